/* dwarf.c - debug information of an image. */
#include "image/dwarf.h"
bool mic_dwarf_open(const struct mic_dwarf_source *source, struct mic_dwarf **out) {
  *out = NULL;
  mic_problem_add(source->problem, "no debug information");
  return false;
}
void mic_dwarf_close(struct mic_dwarf *dwarf) { (void)dwarf; }
size_t mic_dwarf_lookup(struct mic_dwarf *dwarf, uint64_t vaddr, struct mic_dwarf_frame *frames) {
  (void)dwarf;
  (void)vaddr;
  (void)frames;
  return 0;
}
