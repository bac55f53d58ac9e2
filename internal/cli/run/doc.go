// Package run starts environments: up, serve and init.
package run
