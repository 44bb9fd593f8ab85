//! Damages policy folders: each value of the header key adds one fault to the shipped rules.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Result, bail};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::stage::CANARY;

const NOTES: &str = "@owner(\"eve\")\n@reason(\"because\")\n";
const ALL: &str = "permit(principal, action, resource);\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    TenMegabytes,
    HundredThousandRules,
    HundredThousandMistakes,
    ManyFiles,
    UnknownAnnotation,
    OddId,
    IdTwice,
    HalfARule,
    NotUtf8,
    Unseen,
    LinkOut,
    LinkedFolder,
    Circle,
    LinkToNothing,
    Pipe,
    Device,
    TooDeep,
    OtherLetters,
    NoText,
}

impl Attack {
    pub(super) fn parse(word: &str) -> Result<Self> {
        Ok(match word {
            "a file of ten megabytes" => Self::TenMegabytes,
            "a hundred thousand rules" => Self::HundredThousandRules,
            "a hundred thousand mistakes" => Self::HundredThousandMistakes,
            "many files" => Self::ManyFiles,
            "an unknown annotation" => Self::UnknownAnnotation,
            "an odd id" => Self::OddId,
            "an id twice" => Self::IdTwice,
            "half a rule" => Self::HalfARule,
            "not UTF-8" => Self::NotUtf8,
            "what nobody sees" => Self::Unseen,
            "a link out" => Self::LinkOut,
            "a linked folder" => Self::LinkedFolder,
            "a circle" => Self::Circle,
            "a link to nothing" => Self::LinkToNothing,
            "a pipe" => Self::Pipe,
            "a device" => Self::Device,
            "too deep" => Self::TooDeep,
            "other letters" => Self::OtherLetters,
            "a name that is no text" => Self::NoText,
            _ => bail!("unknown attack `{word}`"),
        })
    }

    /// Damages `folder`. Further files are written next to `folder`.
    pub fn commit(self, folder: &Path) -> Result<()> {
        let file = folder.join("zzz.cedar");
        let beside = folder.with_file_name("elsewhere");
        std::fs::create_dir_all(&beside)?;
        std::fs::write(
            beside.join("all.cedar"),
            format!("// {CANARY}-elsewhere\n@id(\"all\")\n{NOTES}{ALL}"),
        )?;
        match self {
            Self::TenMegabytes => std::fs::write(file, "// x\n".repeat(2 << 20))?,
            Self::HundredThousandRules => fill(
                folder,
                "@id(\"r{}\")@owner(\"e\")@reason(\"b\")forbid(principal,action,resource);\n",
            )?,
            Self::HundredThousandMistakes => fill(
                folder,
                "@id(\"r{}\")@ovner(\"e\")@reason(\"b\")forbid(principal,action,resource);\n",
            )?,
            Self::ManyFiles => {
                for n in 0..1_001 {
                    std::fs::write(folder.join(format!("{n}.cedar")), "")?;
                }
            }
            Self::UnknownAnnotation => std::fs::write(
                file,
                format!("@id(\"x\")\n{NOTES}@severity(\"low\")\n{ALL}"),
            )?,
            Self::OddId => std::fs::write(file, format!("@id(\"x\\n(allow)\")\n{NOTES}{ALL}"))?,
            Self::IdTwice => {
                std::fs::write(file, format!("@id(\"flow-rule-of-two\")\n{NOTES}{ALL}"))?
            }
            Self::HalfARule => {
                std::fs::write(file, format!("@id(\"x\")\n{NOTES}forbid(principal, acti"))?
            }
            Self::NotUtf8 => std::fs::write(file, b"// fine\n// \xff\xfe\n")?,
            Self::Unseen => std::fs::write(
                file,
                format!("// nothing here \u{202e}\n@id(\"x\")\n{NOTES}{ALL}"),
            )?,
            Self::LinkOut => symlink("../elsewhere/all.cedar", file)?,
            Self::LinkedFolder => symlink("../elsewhere", folder.join("more"))?,
            Self::Circle => symlink(".", folder.join("again"))?,
            Self::LinkToNothing => symlink("nothing.cedar", file)?,
            Self::Pipe => mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0)?,
            Self::Device => symlink("/dev/zero", file)?,
            Self::TooDeep => {
                let deep = folder.join("a/b/c/d/e");
                std::fs::create_dir_all(&deep)?;
                std::fs::write(deep.join("no.cedar"), "")?;
            }
            Self::OtherLetters => std::fs::write(folder.join("zzz.CEDAR"), "")?,
            Self::NoText => std::fs::write(folder.join(OsStr::from_bytes(b"z\xff.cedar")), "")?,
        }
        Ok(())
    }
}

/// Writes a hundred thousand statements, in files that are each small enough.
fn fill(folder: &Path, statement: &str) -> Result<()> {
    for file in 0..10 {
        let rules = (file * 10_000)..((file + 1) * 10_000);
        let text: String = rules
            .map(|n| statement.replace("{}", &n.to_string()))
            .collect();
        std::fs::write(folder.join(format!("many{file}.cedar")), text)?;
    }
    Ok(())
}
