//! Tests that every message survives its encoding, and that invalid bytes are refused.

use serde_json::json;

use super::*;
use crate::facts::{Bound, Facts, Range};
use crate::shape::{
    ExtraKeyRule, ExtraKeys, Kind, NamedShape, Object, Property, Shape, ToolShape, Tuple,
};

fn replies() -> Vec<Reply> {
    let frame = Frame {
        function: "f".to_owned(),
        line: 1,
        column: 2,
    };
    let finding = |code| Finding {
        severity: Severity::Error,
        code,
        line: 3,
        column: 4,
        message: "é".to_owned(),
        suggestion: Some("s".to_owned()),
    };
    vec![
        Reply::Checked(CheckResult {
            form: Some(Form::Module),
            blanked: Some("x".to_owned()),
            findings: FindingCode::ALL.into_iter().map(finding).collect(),
            findings_dropped: 7,
        }),
        Reply::ShapesWanted(vec![0, 5]),
        Reply::Uses(Uses {
            members: [("a".to_owned(), "b".to_owned())].into(),
            names: ["c".to_owned()].into(),
            described: DescribeUse {
                names: ["d.e".to_owned()].into(),
                others: true,
            },
        }),
        Reply::Instrumented(None),
        Reply::Instrumented(Some("text".to_owned())),
        Reply::Failure(Some(Failure {
            line: 1,
            column: 2,
            message: None,
            because: Some("b".to_owned()),
            stack: vec![frame.clone()],
            is_around: true,
            is_sure: false,
        })),
        Reply::Wait(Some(Wait {
            line: 1,
            column: 2,
            message: "m".to_owned(),
            stack: vec![frame.clone(), frame.clone()],
        })),
        Reply::Stop(Some(Stop {
            line: 1,
            column: 2,
            message: String::new(),
            stack: vec![frame],
            exact_from: Some(9),
        })),
        Reply::Nesting(Some((1, 2))),
    ]
}

#[test]
fn reply_is_decoded_as_it_was_encoded() {
    for reply in replies() {
        let frame = reply.encode().unwrap();
        assert_eq!(Reply::decode(&frame), Ok(reply));
    }
}

#[test]
fn reply_that_is_cut_or_changed_is_an_error_or_another_reply() {
    for reply in replies() {
        let frame = reply.encode().unwrap();
        for length in 0..frame.len() {
            assert!(
                Reply::decode(&frame[..length]).is_err(),
                "{reply:?} {length}"
            );
        }
        for at in 0..frame.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut changed = frame.clone();
                changed[at] = byte;
                let _ = Reply::decode(&changed);
            }
        }
    }
}

#[test]
fn request_is_decoded_as_it_was_encoded() {
    let requests = [
        Request::Uses { script: "a" },
        Request::Nesting { script: "é" },
        Request::Instrument {
            script: "b",
            look: InstrumentPass::Operators,
            secret: Secret(5),
        },
        Request::Follow {
            script: "c",
            from: Some(6),
            secret: Secret(7),
        },
        Request::Check(CheckRequest {
            script: "d",
            is_typescript: true,
            tools: b"t",
            mentions: &[1, 0],
            shapes: vec![(3, b"s")],
            lacking: vec!["Temporal"],
            absent: vec![AbsentServer {
                global: "g",
                why: "w",
                next: "n",
            }],
        }),
    ];
    for request in requests {
        let frame = request.encode().unwrap();
        let decoded = Request::decode(&frame).unwrap();
        assert_eq!(format!("{decoded:?}"), format!("{request:?}"));
        assert!(Request::decode(&frame[..frame.len() - 1]).is_err());
    }
}

#[test]
fn names_of_tools_are_decoded_as_they_were_encoded() {
    let tool = |member, wire_name, flat, short| ToolNames {
        member,
        wire_name,
        flat,
        short,
        order: if short.is_some() {
            vec!["a", "b"]
        } else {
            Vec::new()
        },
        deprecated: short,
    };
    let servers = [
        ServerNames {
            global: "fs",
            first: 0,
            tools: vec![
                tool("read", "read", Flat::Joined, None),
                tool("write_", "write-", Flat::None, None),
            ],
        },
        ServerNames {
            global: "own",
            first: 2,
            tools: vec![tool("x", "x", Flat::Other("y"), Some("x"))],
        },
    ];
    let bytes = encode_tools(&servers).unwrap();
    assert_eq!(decode_tools(&bytes).unwrap(), servers);
    for length in 0..bytes.len() {
        assert!(decode_tools(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn shape_is_decoded_as_it_was_encoded() {
    let limit = |number: i64, exclusive| Bound {
        limit: number.into(),
        exclusive,
    };
    let kinds = vec![
        Kind::Any,
        Kind::Never,
        Kind::Null,
        Kind::Boolean,
        Kind::Number { integer: true },
        Kind::Number { integer: false },
        Kind::String,
        Kind::Literal(json!({"a": [1, "b"]})),
        Kind::Array(Box::new(Shape::any())),
        Kind::Tuple(Tuple {
            items: vec![Shape::any()],
            required: 1,
            rest: Some(Box::new(Shape::any())),
        }),
        Kind::Intersection(vec![Shape::any()]),
        Kind::Named(3),
    ];
    let property = |(number, kind): (usize, Kind)| Property {
        name: format!("p{number}"),
        required: number % 2 == 0,
        shape: Shape {
            kind,
            facts: Facts {
                minimum: Some(limit(1, true)),
                maximum: Some(limit(2, false)),
                length: Range {
                    min: Some(3),
                    max: None,
                },
                ..Facts::default()
            },
        },
    };
    let rests = [
        ExtraKeys::Unsaid,
        ExtraKeys::Forbidden,
        ExtraKeys::Allowed(vec![ExtraKeyRule {
            pattern: Some("^a".to_owned()),
            shape: Shape::any(),
        }]),
    ];
    for rest in rests {
        let properties = kinds.clone().into_iter().enumerate().map(property);
        let object = Kind::Object(Object {
            properties: properties.collect(),
            rest,
        });
        let tool = ToolShape {
            input: Shape::from_kind(object.clone()),
            output: Some(Shape::from_kind(Kind::Union(vec![Shape::from_kind(
                object,
            )]))),
            named: vec![NamedShape {
                name: "n".to_owned(),
                shape: Shape::any(),
            }],
            degraded: Vec::new(),
        };
        let bytes = encode_shape(&tool).unwrap();
        assert_eq!(decode_shape(&bytes), Ok(tool));
    }
}
