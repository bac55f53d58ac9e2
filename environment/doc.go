// Package environment builds every part of a worker environment, starts them in order and stops them in reverse.
package environment
