// Package run starts environments: up, serve and init.
//
// It adapts memory use to the process's limit, writes the log, and drains on signals.
package run
