//! Reads the folder of an embedding model: three files, each read completely and once.

use std::fs;
use std::path::Path;

use airlock_core::problem::Problem;
use airlock_core::search::model::{Model, ModelFiles};

use crate::config::invalid;
use airlock_sandbox::units;

/// Maximum size of a model file in bytes. Static models are smaller.
const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
const NEXT: &str = "name a folder that contains model.safetensors, tokenizer.json and config.json \
                    of a model2vec model";

pub(crate) fn read(folder: &Path) -> Result<Model, Problem> {
    let what = || format!("the embeddings in {} cannot be used", folder.display());
    let file = |name: &str| {
        let path = folder.join(name);
        let length = fs::metadata(&path).map(|it| it.len());
        let bytes = match length {
            Ok(length) if length > FILE_BYTES_MAX => {
                let most = units::show_bytes(FILE_BYTES_MAX);
                return Err(invalid(
                    what(),
                    format!("{name}: the file is larger than {most}"),
                    NEXT,
                ));
            }
            Ok(_) => fs::read(&path),
            Err(error) => Err(error),
        };
        bytes.map_err(|error| invalid(what(), format!("{name}: {error}"), NEXT))
    };
    let (config, tokenizer) = (file("config.json")?, file("tokenizer.json")?);
    let files = ModelFiles {
        tensors: &file("model.safetensors")?,
        tokenizer: &tokenizer,
        config: &config,
    };
    Model::read(files).map_err(|bad| invalid(what(), bad.to_string(), NEXT))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::tempdir::TempDir;

    /// Writes a model of four words, two of which have the same meaning.
    pub(crate) fn tiny(folder: &Path) {
        let words = ["[UNK]", "reads", "peruses", "deletes"];
        let rows: [f32; 8] = [9.0, 9.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0];
        let header = r#"{"embeddings":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]}}"#;
        let mut tensors = (header.len() as u64).to_le_bytes().to_vec();
        tensors.extend_from_slice(header.as_bytes());
        tensors.extend(rows.iter().flat_map(|it| it.to_le_bytes()));
        let numbers = words.iter().enumerate();
        let vocab: Vec<_> = numbers.map(|(at, it)| format!("\"{it}\":{at}")).collect();
        let vocab = vocab.join(",");
        let tokenizer = format!(
            r#"{{"normalizer":{{"type":"Lowercase"}},"model":{{"type":"WordPiece","vocab":{{{vocab}}}}}}}"#
        );
        fs::write(folder.join("model.safetensors"), tensors).unwrap();
        fs::write(folder.join("tokenizer.json"), tokenizer).unwrap();
        fs::write(folder.join("config.json"), r#"{"model_type":"model2vec"}"#).unwrap();
    }

    #[test]
    fn model_folder_loads_or_names_bad_file() {
        let scratch = TempDir::new();
        let why = |folder: &Path| read(folder).unwrap_err().why;
        assert!(why(scratch.path()).starts_with("config.json: "));
        tiny(scratch.path());
        let model = read(scratch.path()).unwrap();
        assert_eq!(model.embed("peruses"), [1.0, 0.0]);
        scratch.file("model.safetensors", "version https://git-lfs");
        assert!(why(scratch.path()).starts_with("model.safetensors: not a safetensors file"));
        scratch.file("tokenizer.json", "no");
        assert!(why(scratch.path()).starts_with("tokenizer.json: "));
    }
}
