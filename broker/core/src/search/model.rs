//! A static embedding model in the format of model2vec: one vector per word piece. The vector of a
//! text is the mean of its pieces' vectors. The model is read from bytes; nothing here opens a
//! file.

mod pieces;
mod tensors;

use serde_json::Value;

use crate::json::{self, Bounds};
use pieces::WordPieces;
use tensors::{Tensor, Tensors};

/// Maximum number of pieces of one text that count.
const PIECES_MAX: usize = 512;
const TOKENIZER: Bounds = Bounds {
    bytes_max: 256 * 1024 * 1024,
    depth_max: 64,
    nodes_max: 20_000_000,
};

/// The three files of a model.
#[derive(Debug, Clone, Copy)]
pub struct ModelFiles<'a> {
    /// Content of `model.safetensors`.
    pub tensors: &'a [u8],
    /// Content of `tokenizer.json`.
    pub tokenizer: &'a [u8],
    /// Content of `config.json`.
    pub config: &'a [u8],
}

/// Why the files are not a valid model, and which file is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {why}")]
pub struct BadModel {
    pub file: &'static str,
    pub why: String,
}

#[derive(Debug, Clone)]
pub struct Model {
    pieces: WordPieces,
    /// The vectors, row after row.
    rows: Vec<f32>,
    dimensions: usize,
    /// The row of each piece, if several pieces share a row.
    mapping: Option<Vec<usize>>,
    /// The weight of each piece, by its number.
    weights: Option<Vec<f32>>,
}

impl Model {
    pub fn read(files: ModelFiles<'_>) -> Result<Self, BadModel> {
        let in_tensors = |why: String| BadModel {
            file: "model.safetensors",
            why,
        };
        is_model2vec(files.config)?;
        let tokenizer = object("tokenizer.json", files.tokenizer)?;
        let pieces = WordPieces::read(&tokenizer).map_err(|why| BadModel {
            file: "tokenizer.json",
            why,
        })?;
        let tensors = Tensors::read(files.tensors).map_err(in_tensors)?;
        let rows = tensors.find("embeddings").map_err(in_tensors)?;
        let rows = rows.ok_or_else(|| in_tensors("missing tensor `embeddings`".into()))?;
        let mapping = tensors.find("mapping").map_err(in_tensors)?;
        let weights = tensors.find("weights").map_err(in_tensors)?;
        Self::new(pieces, &rows, mapping.as_ref(), weights.as_ref()).map_err(in_tensors)
    }

    fn new(
        pieces: WordPieces,
        rows: &Tensor<'_>,
        mapping: Option<&Tensor<'_>>,
        weights: Option<&Tensor<'_>>,
    ) -> Result<Self, String> {
        let [count, dimensions] = *rows.shape.as_slice() else {
            return Err("`embeddings` does not have two dimensions".into());
        };
        if count == 0 || dimensions == 0 {
            return Err("`embeddings` is empty".into());
        }
        let mapping = match mapping {
            None => None,
            Some(mapping) => {
                let mapping: Option<Vec<usize>> = mapping.whole_numbers()?.into_iter().collect();
                let mapping = mapping.ok_or("`mapping` contains a negative number")?;
                if mapping.iter().any(|row| *row >= count) {
                    return Err("`mapping` refers to a row that `embeddings` does not have".into());
                }
                Some(mapping)
            }
        };
        let known = mapping.as_ref().map_or(count, Vec::len);
        if pieces.most() >= known {
            let most = pieces.most();
            return Err(format!(
                "vectors for {known} pieces, but the tokenizer refers to piece {most}"
            ));
        }
        let weights = weights.map(Tensor::numbers).transpose()?;
        if weights.as_ref().is_some_and(|it| it.len() < known) {
            return Err("`weights` has too few numbers".into());
        }
        let rows = rows.numbers()?;
        if rows
            .iter()
            .chain(weights.iter().flatten())
            .any(|it| !it.is_finite())
        {
            return Err("the vectors contain a number that is not finite".into());
        }
        Ok(Self {
            pieces,
            rows,
            dimensions,
            mapping,
            weights,
        })
    }

    /// Returns the mean of the vectors of a text's pieces; zeros if the model knows none of them.
    #[must_use]
    pub fn embed(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0; self.dimensions];
        let mut count = 0.0;
        for piece in self.pieces.of(text).take(PIECES_MAX) {
            let row = match &self.mapping {
                Some(mapping) => mapping.get(piece).copied().unwrap_or(piece),
                None => piece,
            };
            let weight = self.weights.as_ref();
            let weight = weight.and_then(|it| it.get(piece)).copied().unwrap_or(1.0);
            let start = row * self.dimensions;
            let vector = self.rows.get(start..start + self.dimensions);
            for (sum, it) in sum.iter_mut().zip(vector.unwrap_or_default()) {
                *sum += weight * it;
            }
            count += 1.0;
        }
        if count > 0.0 {
            sum.iter_mut().for_each(|it| *it /= count);
        }
        sum
    }

    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }
}

fn is_model2vec(config: &[u8]) -> Result<(), BadModel> {
    let config = object("config.json", config)?;
    let kind = config.get("model_type").and_then(Value::as_str);
    match kind {
        Some("model2vec") => Ok(()),
        other => {
            let other = other.map_or("missing".to_owned(), |it| {
                format!(
                    "`{}`",
                    codegen::text::clip(&codegen::text::neutralise(it), 40)
                )
            });
            Err(BadModel {
                file: "config.json",
                why: format!("`model_type` is {other}; only `model2vec` is supported"),
            })
        }
    }
}

fn object(file: &'static str, bytes: &[u8]) -> Result<Value, BadModel> {
    let value = json::read(bytes, TOKENIZER).map_err(|bad| BadModel {
        file,
        why: bad.to_string(),
    })?;
    if value.is_object() {
        Ok(value)
    } else {
        let why = "not a JSON object".to_owned();
        Err(BadModel { file, why })
    }
}

#[cfg(test)]
pub(crate) mod tests;
