package archives

import (
	"context"
	"io"
	"strings"
)

// Objects is the Amazon S3 API that a [Bucket] uses.
type Objects interface {
	Put(ctx context.Context, bucket, key string, contents io.ReaderAt, size int64) error
	// Get's error has the code queue.CodeResourceNotFound if the object or bucket does not exist.
	Get(ctx context.Context, bucket, key string, w io.Writer) error
	Delete(ctx context.Context, bucket, key string) error
}

// Bucket is a store in an S3 bucket.
type Bucket struct {
	Objects Objects
	Name    string
	Prefix  string
}

// Put implements [Store].
func (b Bucket) Put(ctx context.Context, name string, archive io.ReaderAt, size int64) error {
	return b.Objects.Put(ctx, b.Name, b.key(name), archive, size)
}

// Get implements [Store].
func (b Bucket) Get(ctx context.Context, name string, w io.Writer) error {
	return notFound(b.Objects.Get(ctx, b.Name, b.key(name), w))
}

// Delete implements [Store].
func (b Bucket) Delete(ctx context.Context, name string) error {
	return b.Objects.Delete(ctx, b.Name, b.key(name))
}

func (b Bucket) key(name string) string { return strings.TrimPrefix(b.Prefix+"/"+name, "/") }
