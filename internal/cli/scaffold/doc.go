// Package scaffold generates a Procfile and a tendril.yaml for the app in a folder.
//
// [Recognize] identifies an app by its ecosystem's files, such as package.json or manage.py, without running anything.
// Containers are not supported: a folder that only contains a Dockerfile is refused with advice.
package scaffold
