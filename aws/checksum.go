package aws

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"hash"
	"slices"

	"tendril/queue"
	"tendril/sqswire"
)

// SQS answers every send and every receive with MD5 digests of what it holds.
// They tell a damaged message from a whole one; they protect against accident
// only, not against people.

// checker computes digests into memory it keeps.
type checker struct {
	hash hash.Hash
	buf  []byte
	sum  [md5.Size]byte
	text [2 * md5.Size]byte
}

func newChecker() *checker { return &checker{hash: md5.New()} }

// body reports whether want is the digest of body. No digest is no objection.
func (c *checker) body(body, want []byte) bool {
	if len(want) == 0 {
		return true
	}
	c.hash.Reset()
	c.hash.Write(body)
	return c.matches(want)
}

// attributes reports whether want is the digest of attrs, which must be sorted
// by name.
func (c *checker) attributes(attrs []attribute, want []byte) bool {
	if len(want) == 0 {
		return true
	}
	c.buf = c.buf[:0]
	for _, a := range attrs {
		c.buf = sqswire.AppendAttribute(c.buf, a.name, a.typ, a.value, a.binary)
	}
	c.hash.Reset()
	c.hash.Write(c.buf)
	return c.matches(want)
}

func (c *checker) matches(want []byte) bool {
	hex.Encode(c.text[:], c.hash.Sum(c.sum[:0]))
	return bytes.EqualFold(c.text[:], want)
}

// sent returns the part of m, "body" or "attributes", that does not match the
// digests in the answer; "" when all is well.
func (c *checker) sent(m *queue.Outgoing, r *entryResult) string {
	if !c.body([]byte(m.Body), []byte(r.bodySum)) {
		return "body"
	}
	if r.attributesSum == "" {
		return ""
	}
	attrs := make([]attribute, len(m.Attributes))
	for i, a := range m.Attributes {
		attrs[i] = attribute{name: []byte(a.Name), typ: []byte(a.Type), value: []byte(a.Value), binary: a.IsBinary()}
	}
	slices.SortFunc(attrs, func(x, y attribute) int { return bytes.Compare(x.name, y.name) })
	if !c.attributes(attrs, []byte(r.attributesSum)) {
		return "attributes"
	}
	return ""
}
