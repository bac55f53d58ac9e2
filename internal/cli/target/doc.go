// Package target finds the queue named on the command line.
package target
