//! The looks that must hold beside a case's own.

use super::case::read_name;
use super::look::read_test;
use crate::document::{Decoder, Node};
use crate::way::{AdmissionExpect, Look, SourceKind, Test};

/// A look that must hold in the same round, so that the case's own look proves something.
#[derive(Clone, Debug)]
pub struct Control {
    /// Its name within the case.
    pub name: String,
    /// Where it looks from, when not from where the case does.
    pub source: Option<SourceKind>,
    /// What it looks at, when not at what the case does.
    pub test: Option<Test>,
    /// What it leaves out of what the case sends.
    pub without: Option<Without>,
}

/// What a control leaves out of what its case sends, to be accepted then.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Without {
    /// The field.
    Field,
    /// `spec.os`.
    Os,
}

impl Without {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "field" => Some(Self::Field),
            "os" => Some(Self::Os),
            _ => None,
        }
    }

    /// The look of the control: accepted, where the case expects a refusal, and as the case does
    /// otherwise.
    pub fn look(self, test: &Test) -> Test {
        let Test::Admission(look) = test else {
            return test.clone();
        };
        let mut ask = look.ask.clone();
        match self {
            Self::Field => ask.value = None,
            Self::Os => ask.os = None,
        }
        let expect = match (self, &look.expect) {
            (Self::Os, AdmissionExpect::Dropped) => AdmissionExpect::Dropped,
            _ => AdmissionExpect::Accepted,
        };
        Test::Admission(Look { ask, expect })
    }
}

/// Reads one control; problems are reported to the decoder.
pub(super) fn read_control(decoder: &mut Decoder<'_>, node: &Node) -> Option<Control> {
    let mut fields = decoder.fields(node, "a control")?;
    let name = fields.optional("name");
    let source = fields.optional("source");
    let test = fields.optional("test");
    let without = fields.optional("without");
    let extra = fields.finish(decoder);
    if without.is_none() && name.is_none() {
        decoder.report(node, "a control has no `name`", None);
    }
    if source.is_none() && test.is_none() && without.is_none() {
        // A mistyped key is reported already
        if extra == 0 {
            report_idle(decoder, node);
        }
        return None;
    }
    if let (Some(node), Some(_)) = (without, test.or(source)) {
        let message = "`without` says all of a control";
        decoder.report(
            node,
            message,
            Some("remove its `test` and `source`".to_owned()),
        );
        return None;
    }
    let written = name;
    let name = match written {
        None => None,
        Some(node) => read_name(decoder, node),
    };
    let without = match without {
        None => Some(None),
        Some(node) => {
            let word = "part that is left out";
            decoder
                .word(node, word, &["field", "os"], Without::parse)
                .map(Some)
        }
    };
    let source = match source {
        None => Some(None),
        Some(node) => read_source(decoder, node).map(Some),
    };
    let test = match test {
        None => Some(None),
        Some(node) => read_test(decoder, node).map(Some),
    };
    let name = match (written, without?) {
        (None, Some(Without::Field)) => Some("without-field".to_owned()),
        (None, Some(Without::Os)) => Some("without-os".to_owned()),
        (None, None) | (Some(_), _) => name,
    };
    Some(Control {
        name: name?,
        source: source?,
        test: test?,
        without: without?,
    })
}

/// Reports a control that is like its case.
pub(super) fn report_idle(decoder: &mut Decoder<'_>, node: &Node) {
    let hint = "give it a `source` or a `test` of its own".to_owned();
    decoder.report(node, "a control like its case controls nothing", Some(hint));
}

fn read_source(decoder: &mut Decoder<'_>, node: &Node) -> Option<SourceKind> {
    decoder.word(
        node,
        "source",
        &SourceKind::ALL.map(SourceKind::as_str),
        SourceKind::parse,
    )
}
