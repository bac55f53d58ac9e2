// Package run starts environments: up, serve and init.
//
// It fits the memory of the process to its limit, writes the log, and turns signals into a drain.
package run
