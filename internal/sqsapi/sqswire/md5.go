package sqswire

import (
	"crypto/md5"
	"encoding/binary"
	"slices"
	"strings"

	"tendril/queue"
)

// AppendAttribute appends one message attribute as SQS feeds it to MD5: length and
// name, length and type, one byte that tells text (1) from binary (2), length and
// value. Lengths are four bytes, the most significant first. The digest of several
// attributes is over all of them in the order of their names.
//
// Source: Amazon SQS Developer Guide, "Calculating the MD5 message digest for
// message attributes".
func AppendAttribute[T ~string | ~[]byte](dst []byte, name, typ, value T, isBinary bool) []byte {
	dst = appendSized(dst, name)
	dst = appendSized(dst, typ)
	kind := byte(1)
	if isBinary {
		kind = 2
	}
	return appendSized(append(dst, kind), value)
}

func appendSized[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(s)))
	return append(dst, s...)
}

// AttributesMD5 returns the digest of attributes in any order. SQS gives no digest
// of a message without attributes: the caller leaves it out then.
func AttributesMD5(attributes []queue.Attribute) [md5.Size]byte {
	byName := func(a, b queue.Attribute) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(attributes, byName) {
		attributes = slices.SortedFunc(slices.Values(attributes), byName)
	}
	var scratch [512]byte
	input := scratch[:0]
	for i := range attributes {
		a := &attributes[i]
		input = AppendAttribute(input, a.Name, a.Type, a.Value, a.IsBinary())
	}
	return md5.Sum(input)
}
