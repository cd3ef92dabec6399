/* rule.c - the dictionary of an image's distinct rules. */
#include "unwind/rule.h"

#include <string.h>

enum { EXTRAS_MAX = 17 }; /* one a register */

void mic_rules_init(struct mic_rules *rules) {
  *rules = (struct mic_rules){0};
  for (int cfa = MIC_CFA_NONE; cfa <= MIC_CFA_UNSUPPORTED; cfa++)
    mic_rules_intern(rules, &(struct mic_rule){.cfa = (uint8_t)cfa}, NULL, 0);
}

void mic_rules_free(struct mic_rules *rules) {
  mic_interner_free(&rules->keys);
  mic_interner_free(&rules->expressions);
  mic_vec_free(&rules->rules);
  mic_vec_free(&rules->extras);
}

uint16_t mic_rules_intern(struct mic_rules *rules, const struct mic_rule *rule,
                          const struct mic_extra *extras, size_t extra_count) {
  struct {
    struct mic_rule rule;
    struct mic_extra extras[EXTRAS_MAX];
  } key;
  if (extra_count > EXTRAS_MAX) return MIC_RULE_ID_UNSUPPORTED;
  key.rule = *rule;
  key.rule.extra = 0; /* equal rules share extras wherever they stand */
  key.rule.extra_count = (uint16_t)extra_count;
  if (extra_count) memcpy(key.extras, extras, extra_count * sizeof *extras);
  size_t size = sizeof key.rule + extra_count * sizeof *extras;
  if (rules->rules.count >= MIC_RULES_MAX) {
    uint32_t known = mic_interner_find(&rules->keys, (const char *)&key, size);
    return known == MIC_NONE ? MIC_RULE_ID_UNSUPPORTED : (uint16_t)known;
  }
  uint32_t id = mic_intern(&rules->keys, (const char *)&key, size);
  if (id == rules->rules.count) {
    key.rule.extra = (uint32_t)rules->extras.count;
    *mic_vec_push(&rules->rules) = key.rule;
    for (size_t i = 0; i < extra_count; i++) *mic_vec_push(&rules->extras) = extras[i];
  }
  return (uint16_t)id;
}

static size_t interner_memory(const struct mic_interner *in) {
  return in->arena.total + in->strings.room * sizeof *in->strings.at +
         in->index.room * sizeof *in->index.slots;
}

size_t mic_rules_memory(const struct mic_rules *rules) {
  return interner_memory(&rules->keys) + interner_memory(&rules->expressions) +
         rules->rules.room * sizeof *rules->rules.at +
         rules->extras.room * sizeof *rules->extras.at;
}
