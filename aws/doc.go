// Package aws is the only place that talks to Amazon.
package aws
