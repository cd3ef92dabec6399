-- max: a short recording at a high rate.
return {
  summary = "short and fine: 9,999 Hz, 16 KiB of each stack",
  rate = 9999,
  -- A larger copy makes the kernel drop samples at this rate.
  stack_bytes = 16384,
}
