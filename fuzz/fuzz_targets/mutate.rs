#![no_main]

libfuzzer_sys::fuzz_target!(|data: fencepost_fuzz::Mutation| fencepost_fuzz::mutate(&data));
