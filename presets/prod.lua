-- prod: long recordings of a program in production, at a bounded cost.
return {
  summary = "production: 49 Hz, 32 KiB of each stack, at most 1 % of one CPU",
  rate = 49,
  stack_bytes = 32768,
  -- Of one CPU, in percent, for the recorder itself.
  budget = 1,
}
