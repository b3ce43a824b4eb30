#![no_main]

libfuzzer_sys::fuzz_target!(|data: fencepost_fuzz::Damage| fencepost_fuzz::damage(&data));
