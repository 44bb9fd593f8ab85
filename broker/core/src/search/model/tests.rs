//! Tests with a model of a few words, and with invalid models.

use serde_json::{Value, json};

use super::*;

const CONFIG: &str = r#"{"model_type":"model2vec","normalize":true,"seq_length":512}"#;

/// Returns a safetensors file with these tensors.
fn tensors(all: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
    let (mut header, mut body) = (serde_json::Map::new(), Vec::new());
    for (name, kind, shape, bytes) in all {
        let start = body.len();
        body.extend_from_slice(bytes);
        let entry = json!({"dtype": kind, "shape": shape, "data_offsets": [start, body.len()]});
        header.insert((*name).into(), entry);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend(body);
    file
}

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|it| it.to_le_bytes()).collect()
}

fn tokenizer() -> Value {
    let words = [
        "[UNK]", "delete", "remove", "send", "mail", "letter", "##s", "file",
    ];
    let numbers = words.iter().enumerate();
    let vocab: serde_json::Map<_, _> = numbers
        .map(|(at, word)| ((*word).to_owned(), json!(at)))
        .collect();
    json!({
        "normalizer": {"type": "BertNormalizer", "lowercase": true, "strip_accents": null},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": vocab},
    })
}

/// Words about deleting lie on one axis, words about sending on the other.
#[rustfmt::skip]
const ROWS: [f32; 16] = [
    9.0, 9.0,  1.0, 0.0,  1.0, 0.0,  0.0, 1.0,  0.0, 1.0,  0.0, 1.0,  0.0, 0.0,  0.5, 0.0,
];

fn rows() -> Vec<u8> {
    tensors(&[("embeddings", "F32", &[8, 2], floats(&ROWS))])
}

fn read(tensors: &[u8], tokenizer: &str, config: &str) -> Result<Model, String> {
    let files = ModelFiles {
        tensors,
        tokenizer: tokenizer.as_bytes(),
        config: config.as_bytes(),
    };
    Model::read(files).map_err(|bad| bad.to_string())
}

pub(crate) fn tiny() -> Model {
    read(&rows(), &tokenizer().to_string(), CONFIG).unwrap()
}

#[test]
fn text_vector_is_mean_of_known_pieces() {
    for (text, expected) in [
        ("delete", [1.0, 0.0]),
        ("Delete, SEND!", [0.5, 0.5]),
        ("deletes", [0.5, 0.0]),
        ("délete", [1.0, 0.0]),
        ("delete quux", [1.0, 0.0]),
        ("deletex", [0.0, 0.0]),
        ("", [0.0, 0.0]),
        ("mail 手紙 letter", [0.0, 1.0]),
    ] {
        assert_eq!(tiny().embed(text), expected, "{text}");
    }
    let long = "x".repeat(1_000_000);
    assert_eq!(tiny().embed(&long), [0.0, 0.0]);
}

#[test]
fn rows_may_be_shared_weighted_and_any_type() {
    let halves = |numbers: &[u16]| numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
    let mapping: Vec<u8> = [0_i64, 1, 1, 2, 2, 2, 0, 1]
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    let file = tensors(&[
        (
            "embeddings",
            "F16",
            &[3, 2],
            halves(&[0, 0, 0x3c00, 0, 0, 0x3c00]),
        ),
        ("mapping", "I64", &[8], mapping),
        (
            "weights",
            "F32",
            &[8],
            floats(&[1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ),
    ]);
    let model = read(&file, &tokenizer().to_string(), CONFIG).unwrap();
    assert_eq!(model.embed("delete"), [2.0, 0.0]);
    assert_eq!(model.embed("remove mail"), [0.5, 0.5]);
}

#[test]
fn invalid_model_names_its_file() {
    let good = tokenizer().to_string();
    let with = |key: &str, value: Value| {
        let mut tokenizer = tokenizer();
        tokenizer[key] = value;
        tokenizer.to_string()
    };
    let table = |shape: &[usize], bytes: Vec<u8>| tensors(&[("embeddings", "F32", shape, bytes)]);
    let mapping = tensors(&[
        ("embeddings", "F32", &[8, 2], floats(&ROWS)),
        (
            "mapping",
            "I32",
            &[8],
            floats(&[0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        ),
    ]);
    let mut endless = rows();
    endless.splice(..8, u64::MAX.to_le_bytes());
    for (file, tokenizer, config, says) in [
        (
            vec![],
            &*good,
            CONFIG,
            "model.safetensors: the file is truncated",
        ),
        (
            b"garbage garbage".to_vec(),
            &good,
            CONFIG,
            "not a safetensors file",
        ),
        (endless, &good, CONFIG, "not a safetensors file"),
        (rows()[..60].to_vec(), &good, CONFIG, "model.safetensors"),
        (tensors(&[]), &good, CONFIG, "missing tensor `embeddings`"),
        (
            table(&[16], floats(&ROWS)),
            &good,
            CONFIG,
            "not have two dimensions",
        ),
        (
            table(&[9, 2], floats(&ROWS)),
            &good,
            CONFIG,
            "does not match its shape",
        ),
        (
            table(&[usize::MAX, 2], floats(&ROWS)),
            &good,
            CONFIG,
            "does not match its shape",
        ),
        (
            table(&[4, 2], floats(&ROWS[..8])),
            &good,
            CONFIG,
            "vectors for 4 pieces",
        ),
        (
            table(&[8, 2], floats(&[f32::NAN; 16])),
            &good,
            CONFIG,
            "not finite",
        ),
        (mapping, &good, CONFIG, "refers to a row"),
        (rows(), "[]", CONFIG, "tokenizer.json: not a JSON object"),
        (rows(), "{", CONFIG, "tokenizer.json"),
        (
            rows(),
            &with("model", json!({"type": "Unigram"})),
            CONFIG,
            "WordPiece",
        ),
        (
            rows(),
            &with("model", json!({"vocab": {}})),
            CONFIG,
            "is empty",
        ),
        (
            rows(),
            &with("model", json!({"vocab": {"a": -1}})),
            CONFIG,
            "numbers",
        ),
        (
            rows(),
            &with("normalizer", json!({"type": "Replace"})),
            CONFIG,
            "normalizer",
        ),
        (
            rows(),
            &with("pre_tokenizer", json!({"type": "Metaspace"})),
            CONFIG,
            "pre_tokenizer",
        ),
        (rows(), &good, "{}", "config.json: `model_type` is missing"),
        (
            rows(),
            &good,
            r#"{"model_type":"bert"}"#,
            "config.json: `model_type` is `bert`",
        ),
    ] {
        let why = read(&file, tokenizer, config).unwrap_err();
        assert!(why.contains(says), "{says}: {why}");
    }
}
