//! Code that the black-box tests share: commands and their output, the headers of hostile scripts,
//! the memory and threads of this process, and third-party servers and hosts.

mod apt;
pub mod binary;
pub mod browser;
pub mod case_file;
pub mod changing;
pub mod command;
pub mod engine;
pub mod engines;
mod install;
pub mod patience;
pub mod real_hosts;
pub mod real_servers;
pub mod sarif;
pub mod serving;
pub mod solver;
pub mod stage;
pub mod stdio_host;
pub mod typescript;
pub mod typing;
pub mod vitals;
