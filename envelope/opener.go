package envelope

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tendril/queue"
)

// defaultLimit is the largest payload that is fetched when nobody says.
const defaultLimit = 16 << 20

// The reasons of an [Opener] to fail that are not the Fetcher's.
var (
	// ErrNotAllowed: the pointer names a bucket that nobody allowed.
	ErrNotAllowed = errors.New("the bucket is not allowed")
	// ErrTooLarge: the payload is larger than the limit.
	ErrTooLarge = errors.New("the payload is too large")
	// ErrNoPointer: the message is marked as one whose payload lies in S3, but
	// its body does not say where.
	ErrNoPointer = errors.New("no pointer")
)

// Fetcher reads objects of S3.
type Fetcher interface {
	// Fetch returns the whole object, or an error when it is missing, may not be
	// read, or has more than limit bytes: then it need not be read to its end.
	// The error says which, and not the key.
	Fetch(ctx context.Context, bucket, key string, limit int64) ([]byte, error)
}

// Opener replaces pointers by what they point to. Its fields are not changed once
// it is used; then it may be used by several goroutines.
type Opener struct {
	// Fetcher is required.
	Fetcher Fetcher
	// Buckets are those that may be read, by their exact names. Every other is
	// refused; none means that nothing is fetched.
	Buckets []string
	// Limit is the largest payload in bytes; 0 means 16 MiB.
	Limit int64
}

// Open returns the message whose body is the payload that m points to, without the
// attribute that marks it. opened is false, and the message m itself, when m has
// no such attribute (ExtendedPayloadSize, or SQSLargePayloadSize of older
// clients): a body alone that looks like a pointer is left alone.
//
// An error says in words why the payload cannot be had: nothing should be
// delivered then, for the body is not what was sent.
func (o *Opener) Open(ctx context.Context, m *queue.Message) (inner queue.Message, opened bool, err error) {
	marks := slices.DeleteFunc(slices.Clone(m.Attributes), func(a queue.Attribute) bool { return !isMark(a.Name) })
	if len(marks) == 0 {
		return *m, false, nil
	}
	bucket, key, ok := Pointer(m.Body)
	if !ok {
		return *m, false, fmt.Errorf("%w: the attribute %s says that the payload lies in S3, but the body is no pointer that an extended client writes",
			ErrNoPointer, marks[0].Name)
	}
	if !slices.Contains(o.Buckets, bucket) {
		return *m, false, fmt.Errorf("%w: the payload lies in the S3 bucket %q, and %s; allow it if its objects are yours",
			ErrNotAllowed, bucket, o.allowed())
	}
	payload, err := o.fetch(ctx, bucket, key, marks[0].Value)
	if err != nil {
		return *m, false, err
	}
	inner = *m
	inner.Body = string(payload)
	inner.Attributes = slices.DeleteFunc(slices.Clone(m.Attributes), func(a queue.Attribute) bool { return isMark(a.Name) })
	return inner, true, nil
}

// fetch reads the object, unless the size that was announced is too large.
func (o *Opener) fetch(ctx context.Context, bucket, key, announced string) ([]byte, error) {
	limit := cmp.Or(o.Limit, defaultLimit)
	if size, err := strconv.ParseInt(announced, 10, 64); err == nil && size > limit {
		return nil, fmt.Errorf("%w: %d bytes in the S3 bucket %s, at most %d are fetched", ErrTooLarge, size, bucket, limit)
	}
	payload, err := o.Fetcher.Fetch(ctx, bucket, key, limit)
	if err != nil {
		return nil, fmt.Errorf("fetching the payload from the S3 bucket %s: %w", bucket, err)
	}
	if int64(len(payload)) > limit {
		return nil, fmt.Errorf("%w: more than the %d bytes that are fetched, in the S3 bucket %s", ErrTooLarge, limit, bucket)
	}
	return payload, nil
}

// allowed lists the buckets for an error.
func (o *Opener) allowed() string {
	if len(o.Buckets) == 0 {
		return "no bucket is allowed"
	}
	return "only these are allowed: " + strings.Join(o.Buckets, ", ")
}

// isMark reports whether the attribute is the one by which extended clients mark a
// message.
func isMark(name string) bool { return name == "ExtendedPayloadSize" || name == "SQSLargePayloadSize" }
