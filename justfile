# What developers type; `just` lists it. CI calls the same scripts.

_default:
    @just --list --unsorted

# Format, lints, scripts, licences, budgets of lines
check:
    ci/check

# Every test that needs nothing but Rust
test *ARGS:
    cargo test --workspace {{ARGS}}

# The table of faults, in memory; FAULT is a part of a row's name
faults FAULT='table::':
    cargo test --test virtual -- --include-ignored {{FAULT}}

# A run on a simulated cluster
demo *ARGS:
    cargo run --release -- demo {{ARGS}}

# A command with a real control plane of its own, such as `just cluster cargo test --test real life::`
cluster +COMMAND:
    ci/with-control-plane {{COMMAND}}

# The book, in target/book
book:
    mdbook build docs

# Everything that a push runs, on a bare Debian 12
push:
    .ci/run

# What takes too long for a push; STEPS as `ci/nightly` lists them
nightly *STEPS:
    ci/nightly {{STEPS}}

# The container image, without `demo`
image:
    ci/image/build
