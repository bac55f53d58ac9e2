// Package tokens keeps the access tokens of a console in its data directory.
//
// 'tendril tokens' creates and revokes them in a file; the console reads it again when it changes, and lets
// the holders in. Only digests of secrets are stored.
package tokens
