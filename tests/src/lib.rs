//! Code that the black-box tests share: commands and their output, the headers of hostile scripts,
//! the memory and threads of processes, and third-party servers and hosts.

pub mod agent_hosts;
pub mod any_host;
pub mod approval_page;
mod apt;
pub mod binary;
pub mod browser;
pub mod case_file;
pub mod changing;
pub mod clock_ahead;
pub mod command;
pub mod conformance;
pub mod counting;
pub mod counting_http;
pub mod engine;
pub mod engines;
mod install;
pub mod login_server;
pub mod node_client;
pub mod patience;
pub mod process;
pub mod real_hosts;
pub mod real_servers;
pub mod sarif;
pub mod scripted_model;
pub mod serving;
pub mod solver;
pub mod stage;
pub mod stdio_host;
pub mod typescript;
pub mod typing;
pub mod vitals;
