// Package provision prints deployment files, and deletes the AWS resources of an environment.
package provision
