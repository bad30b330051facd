//! The wire format of protobuf, without its schemas: fields of a message that is in memory, and a stream of fields whose messages are too
//! large for that.
//!
//! Nothing is believed: a length is checked against what is left, and memory is taken as bytes arrive, not as lengths promise.

use std::io::Read as _;

use crate::Result;
use crate::input::Input;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// A text, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// A whole number of any width.
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            Value::Varint(number) | Value::Fixed64(number) => Some(number),
            Value::Fixed32(number) => Some(u64::from(number)),
            Value::Bytes(_) => None,
        }
    }

    /// A whole number that is written as two's complement.
    pub(crate) fn signed(self) -> Option<i64> {
        self.number().map(u64::cast_signed)
    }

    /// A number of at most 32 bits.
    pub(crate) fn small(self) -> Option<u32> {
        self.number().and_then(|number| u32::try_from(number).ok())
    }

    /// The lower 32 bits of a number: a process or thread, which some write as a negative number or of an address.
    pub(crate) fn low(self) -> Option<u32> {
        self.number().map(|number| number as u32)
    }

    /// A fraction of eight bytes.
    pub(crate) fn double(self) -> Option<f64> {
        match self {
            Value::Fixed64(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// Bytes.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The fields of a message, in their order. What is no field ends them, and is told by [`Fields::damaged`].
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    damaged: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message, damaged: false }
    }

    /// Whether they ended before the message did.
    pub(crate) fn damaged(&self) -> bool {
        self.damaged
    }

    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let (number, kind) = split(varint(&mut self.rest)?)?;
        let value = match kind {
            0 => Value::Varint(varint(&mut self.rest)?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let bytes = self.rest.get(..length)?;
                self.rest = &self.rest[length..];
                Value::Bytes(bytes)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            // Groups, which nobody writes any more, and what never was.
            _ => return None,
        };
        Some((number, value))
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*array)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Value<'a>);

    fn next(&mut self) -> Option<(u32, Value<'a>)> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.damaged = true;
            self.rest = &[];
        }
        field
    }
}

/// The first field of a number.
pub(crate) fn find(message: &[u8], number: u32) -> Option<Value<'_>> {
    Fields::new(message).find(|(field, _)| *field == number).map(|(_, value)| value)
}

/// The numbers of a repeated field: one by one, or packed as varints.
pub(crate) fn varints(value: Value<'_>, mut each: impl FnMut(u64)) {
    match value {
        Value::Bytes(mut packed) => {
            while let Some(number) = varint(&mut packed) {
                each(number);
            }
        }
        value => value.number().into_iter().for_each(each),
    }
}

/// The numbers of a repeated field: one by one, or packed as eight bytes each.
pub(crate) fn fixed64s(value: Value<'_>, mut each: impl FnMut(u64)) {
    match value {
        Value::Bytes(packed) => {
            for chunk in packed.as_chunks::<8>().0 {
                each(u64::from_le_bytes(*chunk));
            }
        }
        value => value.number().into_iter().for_each(each),
    }
}

/// A number of up to ten bytes, seven bits each.
pub(crate) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for (place, byte) in rest.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            *rest = &rest[place + 1..];
            return Some(number);
        }
    }
    None
}

/// The number and kind of a field.
fn split(tag: u64) -> Option<(u32, u8)> {
    let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number))?;
    Some((number, (tag & 7) as u8))
}

/// The value of a field of a stream. Bytes are still to be read: with [`load`], [`Input::pass`], or as a message up to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    Number(u64),
    Bytes(u64),
}

/// The next field of a message that ends at a place of the stream; none there. A stream that ends is the end of a message whose end is `u64::MAX`.
pub(crate) fn next(input: &mut Input<'_>, end: u64) -> Result<Option<(u32, Head)>> {
    let at = input.offset();
    if at == end {
        return Ok(None);
    }
    let Some(tag) = stream_varint(input, end == u64::MAX)? else { return Ok(None) };
    let Some((number, kind)) = split(tag) else {
        return Err(input.invalid(at, "this is no field of a protobuf message"));
    };
    let head = match kind {
        0 => Head::Number(stream_varint(input, false)?.unwrap_or_default()),
        1 => {
            let mut bytes = [0; 8];
            input.fill(&mut bytes)?;
            Head::Number(u64::from_le_bytes(bytes))
        }
        2 => Head::Bytes(stream_varint(input, false)?.unwrap_or_default()),
        5 => {
            let mut bytes = [0; 4];
            input.fill(&mut bytes)?;
            Head::Number(u64::from(u32::from_le_bytes(bytes)))
        }
        _ => return Err(input.invalid(at, "this is no field of a protobuf message")),
    };
    let length = if let Head::Bytes(length) = head { length } else { 0 };
    match input.offset().checked_add(length) {
        Some(over) if over <= end => Ok(Some((number, head))),
        _ => Err(input.invalid(at, "a field reaches beyond the end of its message")),
    }
}

/// A number of a stream; none where the stream ends before it, if it may.
pub(crate) fn stream_varint(input: &mut Input<'_>, may_end: bool) -> Result<Option<u64>> {
    let at = input.offset();
    let (mut bytes, mut used) = ([0; 10], 0);
    while used < bytes.len() {
        let read = input.take_some(&mut bytes[used..=used])?;
        if read == 0 {
            return if may_end && used == 0 {
                Ok(None)
            } else {
                Err(input.invalid(at, "the file ends within a number"))
            };
        }
        used += 1;
        if bytes[used - 1] & 0x80 == 0 {
            return Ok(varint(&mut &bytes[..used]));
        }
    }
    Err(input.invalid(at, "a number has more than ten bytes"))
}

/// Reads bytes into a buffer, which is cleared first.
pub(crate) fn load(input: &mut Input<'_>, length: u64, buffer: &mut Vec<u8>) -> Result<()> {
    let at = input.offset();
    buffer.clear();
    let read = input.by_ref().take(length).read_to_end(buffer);
    let read = read.map_err(|source| crate::ImportError::Io { name: input.name().to_owned(), source })? as u64;
    if read < length {
        return Err(input.invalid(at, format!("the file ends {} bytes too early", length - read)));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod make {
    //! Messages for tests.

    /// Appends a number.
    pub(crate) fn varint(out: &mut Vec<u8>, mut number: u64) {
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }

    /// A field with a number.
    pub(crate) fn number(field: u32, value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        varint(&mut out, u64::from(field) << 3);
        varint(&mut out, value);
        out
    }

    /// A field with a number of eight bytes.
    pub(crate) fn fixed(field: u32, value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        varint(&mut out, u64::from(field) << 3 | 1);
        out.extend(value.to_le_bytes());
        out
    }

    /// A field with bytes.
    pub(crate) fn bytes(field: u32, value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        varint(&mut out, u64::from(field) << 3 | 2);
        varint(&mut out, value.len() as u64);
        out.extend(value);
        out
    }

    /// A field with a message of fields.
    pub(crate) fn message(field: u32, fields: &[Vec<u8>]) -> Vec<u8> {
        bytes(field, &fields.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_kind() {
        let message = [make::number(1, 300), make::fixed(2, 7), make::bytes(3, b"abc"), vec![4 << 3 | 5, 1, 0, 0, 0]];
        let message = message.concat();
        let expected =
            [(1, Value::Varint(300)), (2, Value::Fixed64(7)), (3, Value::Bytes(b"abc")), (4, Value::Fixed32(1))];
        let mut fields = Fields::new(&message);
        assert_eq!(fields.by_ref().collect::<Vec<_>>(), expected);
        assert!(!fields.damaged());
        assert_eq!(find(&message, 3).and_then(Value::bytes), Some(&b"abc"[..]));
        // The same of a stream.
        let mut reader = message.as_slice();
        let mut input = Input::new("x", &mut reader);
        let mut found = Vec::new();
        while let Some((field, head)) = next(&mut input, u64::MAX).expect("memory") {
            if let Head::Bytes(length) = head {
                input.pass(length).expect("there");
            }
            found.push((field, head));
        }
        assert_eq!(found, [(1, Head::Number(300)), (2, Head::Number(7)), (3, Head::Bytes(3)), (4, Head::Number(1))]);
    }

    #[test]
    fn repeated_numbers_are_packed_or_not() {
        let mut found = Vec::new();
        varints(Value::Bytes(&[1, 0x80, 1, 5, 0x80]), |number| found.push(number));
        varints(Value::Varint(9), |number| found.push(number));
        fixed64s(Value::Bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 3]), |number| found.push(number));
        assert_eq!(found, [1, 128, 5, 9, 1]);
    }

    #[test]
    fn damage_ends_fields() {
        for bad in [&[0x80][..], &[0], &[8], &[8, 0x80], &[0x0A, 5, 1], &[9, 1], &[0x0B], &[0xFF; 12]] {
            let mut fields = Fields::new(bad);
            assert_eq!(fields.by_ref().count(), 0, "{bad:?}");
            assert!(fields.damaged(), "{bad:?}");
            let mut reader = bad;
            let mut input = Input::new("x", &mut reader);
            let read = next(&mut input, bad.len() as u64 + 1).and_then(|field| match field {
                Some((_, Head::Bytes(length))) => load(&mut input, length, &mut Vec::new()),
                _ => Ok(()),
            });
            assert!(read.is_err(), "{bad:?}");
        }
    }
}
