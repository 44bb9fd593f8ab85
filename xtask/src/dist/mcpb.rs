//! The bundle for Claude Desktop: a zip file with a manifest and the program.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;

use super::archive::{Entry, write_zip};
use super::names::{ABOUT, LICENCE, PACKAGE, VERSION};
use super::program::Program;

pub(super) fn bundle(out: &Path, program: &Program, documents: &[Entry]) -> Result<PathBuf> {
    let platform = program.platform;
    let manifest = json!({
        "manifest_version": "0.3",
        "name": PACKAGE,
        "display_name": "airlock",
        "version": VERSION,
        "description": ABOUT,
        "author": {"name": "The airlock authors"},
        "license": LICENCE,
        "server": {
            "type": "binary",
            "entry_point": "server/airlock",
            "mcp_config": {
                "command": "${__dirname}/server/airlock",
                "args": ["serve", "--config", "${user_config.config}"],
            },
        },
        "tools_generated": true,
        "compatibility": {"platforms": [platform.node.0]},
        "user_config": {
            "config": {
                "type": "file",
                "title": "Configuration",
                "description": "The airlock.toml with your servers and rules",
                "required": true,
            },
        },
    });
    let mut entries = vec![
        Entry::file(
            "manifest.json",
            serde_json::to_string_pretty(&manifest)? + "\n",
        ),
        Entry::program("server/airlock", program.bytes.clone()),
    ];
    let kept = ["LICENSE", "THIRD-PARTY-LICENSES.txt"];
    entries.extend(
        documents
            .iter()
            .filter(|it| kept.contains(&&*it.name))
            .cloned(),
    );
    let name = format!(
        "airlock-{VERSION}-{}-{}.mcpb",
        platform.node.0, platform.node.1
    );
    let path = out.join(name);
    write_zip(&path, &entries)?;
    Ok(path)
}
