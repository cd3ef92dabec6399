/* extent.c - pieces of code by their FDEs. */
#include "image/extent.h"

#include "image/plt.h"

/* An FDE that leaves its segment bounds nothing. */
static bool is_piece(const struct mic_elf *elf, const struct mic_cfi_fde *fde) {
  uint64_t pushed;
  return mic_elf_is_code(elf, fde->start, fde->end - fde->start) &&
         !mic_plt_is_stub(elf, fde->start, &pushed);
}

static bool find(struct mic_extents *e, struct mic_fde_index *index, uint64_t vaddr,
                 struct mic_extent *out, bool *covered) {
  struct mic_cfi_fde fde;
  size_t entry;
  *covered = mic_fde_find(index, vaddr, &fde, &entry) == MIC_FDE_FOUND;
  if (!*covered || !is_piece(e->elf, &fde)) return false;
  *out = (struct mic_extent){fde.start, fde.end};
  return true;
}

bool mic_extent_find(struct mic_extents *extents, uint64_t vaddr, struct mic_extent *out) {
  bool covered;
  if (!extents->eh_read) mic_fde_index_eh(&extents->eh, extents->elf);
  extents->eh_read = true;
  if (find(extents, &extents->eh, vaddr, out, &covered)) return true;
  if (covered) return false;
  if (!extents->debug_read) mic_fde_index_debug(&extents->debug, extents->elf);
  extents->debug_read = true;
  return find(extents, &extents->debug, vaddr, out, &covered);
}

void mic_extents_free(struct mic_extents *extents) {
  mic_fde_index_free(&extents->eh);
  mic_fde_index_free(&extents->debug);
}
