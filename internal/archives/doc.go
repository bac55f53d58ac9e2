// Package archives stores the archives of app versions where all instances of an environment can fetch them.
//
// A [Store] is a shared folder, an S3 bucket, or the tendril that serves the queue. It is not trusted: [Fetch] verifies
// the digest of each archive.
package archives
