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

var (
	errNotAllowed = errors.New("bucket not allowed")
	// errBadKey means that a proxy could resolve the key to an object in another bucket.
	errBadKey = errors.New("key not allowed")
	// ErrTooLarge means that the payload exceeds [Opener].Limit.
	ErrTooLarge = errors.New("payload too large")
	// ErrNoPointer means that a message is marked as a pointer, but has no pointer in its body.
	ErrNoPointer = errors.New("invalid S3 pointer")
)

// Fetcher reads S3 objects.
type Fetcher interface {
	// Fetch returns the whole object, or an error above limit. Errors must not contain the key.
	Fetch(ctx context.Context, bucket, key string, limit int64) ([]byte, error)
}

// Opener replaces S3 pointers with their payloads.
type Opener struct {
	Fetcher Fetcher
	// Buckets lists the buckets that may be read.
	Buckets []string
	Limit   int64 // payload size in bytes; 0 means 16 MiB
}

// Open returns a copy of m with its payload as the body, without the attribute that marks pointers
// (ExtendedPayloadSize, formerly SQSLargePayloadSize). If m has no such attribute, the copy is unchanged. After an
// error, m must not be delivered, because its body differs from the producer's.
func (o *Opener) Open(ctx context.Context, m *queue.Message) (queue.Message, error) {
	isMark := func(a queue.Attribute) bool {
		return a.Name == "ExtendedPayloadSize" || a.Name == "SQSLargePayloadSize"
	}
	mark := slices.IndexFunc(m.Attributes, isMark)
	if mark < 0 {
		return *m, nil
	}

	bucket, key, ok := parsePointer(m.Body)
	if !ok {
		return *m, fmt.Errorf("%w: attribute %s refers to a payload in S3, but the body does not contain its "+
			"location", ErrNoPointer, m.Attributes[mark].Name)
	}
	if err := o.checkLocation(bucket, key); err != nil {
		return *m, err
	}
	limit := cmp.Or(o.Limit, 16<<20)
	if size, err := strconv.ParseInt(m.Attributes[mark].Value, 10, 64); err == nil && size > limit {
		return *m, fmt.Errorf("%w: %d bytes in S3 bucket %s, at most %d are allowed", ErrTooLarge, size, bucket, limit)
	}

	payload, err := o.Fetcher.Fetch(ctx, bucket, key, limit)
	if err != nil {
		return *m, fmt.Errorf("fetching the payload from S3 bucket %s: %w", bucket, err)
	}
	if int64(len(payload)) > limit {
		return *m, fmt.Errorf("%w: more than %d bytes in S3 bucket %s", ErrTooLarge, limit, bucket)
	}

	opened := *m
	opened.Body = string(payload)
	opened.Attributes = slices.DeleteFunc(slices.Clone(m.Attributes), isMark)
	return opened, nil
}

func (o *Opener) checkLocation(bucket, key string) error {
	if !slices.Contains(o.Buckets, bucket) {
		allowed := "no bucket is allowed"
		if len(o.Buckets) > 0 {
			allowed = "only these are allowed: " + strings.Join(o.Buckets, ", ")
		}
		return fmt.Errorf("%w: the payload is in S3 bucket %q, and %s; allow the bucket if its objects are yours",
			errNotAllowed, bucket, allowed)
	}
	if leavesBucket(key) {
		return fmt.Errorf("%w: the key of the payload in S3 bucket %q has a path segment . or .., which a "+
			"proxy may resolve to another bucket; store payloads under keys without such segments", errBadKey, bucket)
	}
	return nil
}
