package aws

import "unsafe"

// client holds the client of a service. It keeps its type from the values that reflection can reach: html/template
// calls methods by name, so the linker keeps every method of a type that is reachable, and the few hundred
// operations that tendril never calls are 10 MB of the binary (decision 0066). The zero value holds nil.
type client[T any] struct {
	pointer unsafe.Pointer // *T
}

func hold[T any](c *T) client[T] { return client[T]{unsafe.Pointer(c)} }

func (c client[T]) get() *T { return (*T)(c.pointer) }
