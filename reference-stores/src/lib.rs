//! bundled stores
