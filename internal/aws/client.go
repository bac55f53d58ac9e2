package aws

import "unsafe"

// client hides the SDK's client from reflection: html/template would make the linker keep all methods of a reachable
// client, adding 10 MB (decision 0066). The zero value holds nil.
type client[T any] struct {
	pointer unsafe.Pointer
}

func newClient[T any](c *T) client[T] { return client[T]{unsafe.Pointer(c)} }

func (c client[T]) get() *T { return (*T)(c.pointer) }
