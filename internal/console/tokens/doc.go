// Package tokens stores a console's access tokens in the data directory.
//
// 'tendril tokens' creates and revokes tokens; the console rereads the file when it changes. Only digests of secrets
// are stored.
package tokens
