#![no_main]

libfuzzer_sys::fuzz_target!(|data: fencepost_fuzz::Work| fencepost_fuzz::writer(&data));
