//! Reads the safetensors format: eight bytes with the length of the header, the header as JSON,
//! then the numbers of all tensors.

use serde_json::Value;

use crate::json::{self, Bounds};

const HEADER: Bounds = Bounds {
    bytes_max: 16 * 1024 * 1024,
    depth_max: 8,
    nodes_max: 1_000_000,
};

/// A file with its parsed header.
#[derive(Debug)]
pub(super) struct Tensors<'a> {
    header: Value,
    body: &'a [u8],
}

#[derive(Debug)]
pub(super) struct Tensor<'a> {
    name: String,
    kind: Kind,
    pub(super) shape: Vec<usize>,
    bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I8,
    U8,
}

impl Kind {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "F64" => Self::F64,
            "F32" => Self::F32,
            "F16" => Self::F16,
            "BF16" => Self::BF16,
            "I64" => Self::I64,
            "I32" => Self::I32,
            "I8" => Self::I8,
            "U8" => Self::U8,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::I8 | Self::U8 => 1,
        }
    }
}

impl<'a> Tensors<'a> {
    pub(super) fn read(file: &'a [u8]) -> Result<Self, String> {
        let (length, rest) = file
            .split_first_chunk::<8>()
            .ok_or("the file is truncated")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok();
        let parts = length.and_then(|length| rest.split_at_checked(length));
        let (header, body) = parts.ok_or("not a safetensors file, or a truncated one")?;
        let header = json::read(header, HEADER).map_err(|bad| format!("invalid header: {bad}"))?;
        Ok(Self { header, body })
    }

    /// Returns `None` if there is no tensor of this name.
    pub(super) fn find(&self, name: &str) -> Result<Option<Tensor<'a>>, String> {
        let Some(said) = self.header.get(name) else {
            return Ok(None);
        };
        let wrong = |what: &str| format!("the tensor `{name}` {what}");
        let kind = said.get("dtype").and_then(Value::as_str);
        let kind = kind.and_then(Kind::parse);
        let kind = kind.ok_or_else(|| wrong("has an unsupported number type"))?;
        let whole = |list: &Value| -> Option<Vec<usize>> {
            let number = |it: &Value| usize::try_from(it.as_u64()?).ok();
            list.as_array()?.iter().map(number).collect()
        };
        let shape = said.get("shape").and_then(whole);
        let shape = shape.ok_or_else(|| wrong("has no shape"))?;
        let offsets = said.get("data_offsets").and_then(whole);
        let bytes = match offsets.as_deref() {
            Some([start, end]) => self.body.get(*start..*end),
            _ => None,
        };
        let bytes = bytes.ok_or_else(|| wrong("lies outside of the file"))?;
        let size = shape
            .iter()
            .try_fold(kind.bytes(), |size, length| size.checked_mul(*length));
        if size != Some(bytes.len()) {
            return Err(wrong(
                "has a number of values that does not match its shape",
            ));
        }
        Ok(Some(Tensor {
            name: name.to_owned(),
            kind,
            shape,
            bytes,
        }))
    }
}

impl Tensor<'_> {
    pub(super) fn numbers(&self) -> Result<Vec<f32>, String> {
        let pieces = self.bytes.chunks_exact(self.kind.bytes());
        Ok(match self.kind {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "single precision is enough"
            )]
            Kind::F64 => pieces
                .map(|it| f64::from_le_bytes(array(it)) as f32)
                .collect(),
            Kind::F32 => pieces.map(|it| f32::from_le_bytes(array(it))).collect(),
            Kind::F16 => pieces
                .map(|it| half(u16::from_le_bytes(array(it))))
                .collect(),
            Kind::BF16 => {
                let whole = |it| u32::from(u16::from_le_bytes(array(it))) << 16;
                pieces.map(|it| f32::from_bits(whole(it))).collect()
            }
            Kind::I8 => pieces
                .map(|it| f32::from(i8::from_le_bytes(array(it))))
                .collect(),
            Kind::U8 | Kind::I32 | Kind::I64 => {
                return Err(format!("the tensor `{}` contains integers", self.name));
            }
        })
    }

    /// Returns the numbers as indexes. A negative number becomes `None`.
    pub(super) fn whole_numbers(&self) -> Result<Vec<Option<usize>>, String> {
        let pieces = self.bytes.chunks_exact(self.kind.bytes());
        Ok(match self.kind {
            Kind::I64 => {
                let number = |it| usize::try_from(i64::from_le_bytes(array(it))).ok();
                pieces.map(number).collect()
            }
            Kind::I32 => {
                let number = |it| usize::try_from(i32::from_le_bytes(array(it))).ok();
                pieces.map(number).collect()
            }
            Kind::U8 => pieces
                .map(|it| Some(usize::from(array::<1>(it)[0])))
                .collect(),
            _ => {
                return Err(format!(
                    "the tensor `{}` does not contain integers",
                    self.name
                ));
            }
        })
    }
}

/// Converts a chunk, which always has the requested size.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0; N])
}

/// Converts a half-precision number: one sign bit, five exponent bits, ten fraction bits.
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let (exponent, fraction) = (u32::from(bits >> 10) & 0x1f, u32::from(bits) & 0x3ff);
    match exponent {
        0 => {
            let small = f32::from(bits & 0x3ff) / 16_777_216.0;
            if sign == 0 { small } else { -small }
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_numbers_decode() {
        for (bits, expected) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65_504.0),
            (0x0001, 5.960_464_5e-8),
            (0x8000, -0.0),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(half(bits), expected, "{bits:#x}");
        }
        assert!(half(0x7e00).is_nan());
    }
}
