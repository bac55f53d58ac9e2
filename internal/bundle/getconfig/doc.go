// Package getconfig implements Elastic Beanstalk's get-config tool for scripts.
//
// Hooks, build commands and apps written for Elastic Beanstalk call /opt/elasticbeanstalk/bin/get-config to get
// environment properties, option settings and paths. The running environment writes these facts to a [Folder] in its
// data directory, and the get-config command reads them:
//
//	environment --> Folder.Publish --> get-config/v7/facts.json   hooks, build commands
//	                                   get-config/v7/app.json     the app, if it is another user
//	                                   get-config/current -> v7   all others
//	                                   get-config/bin/get-config -> tendril
//
//	get-config environment -k NAME --> Open --> Facts.Answer --> Format
//
// Each version of the app has its own facts, so that a hook of a version being deployed sees that version's settings
// while the previous version is still serving. [Folder.Environ] adds the command to PATH and the facts to
// [FileVariable]. Processes without that variable, such as an interactive shell, get the serving version's facts.
//
// # Invariants
//
// Facts contain environment properties, which may be secret: each file has mode 0600 and belongs to tendril's user or
// the app's user. Root only reads files that no other user can write. Files are replaced atomically. The folder is
// removed when the environment stops. Without a data directory it is a temporary folder locked by its process; the
// next start removes leftovers of killed processes.
//
// Source of the commands, options and output formats: AWS Elastic Beanstalk Developer Guide, "Platform script tools
// for your Elastic Beanstalk environments". The guide does not document meta and its key sqsdconfig; they use the
// keys of aws-sqsd's settings file.
package getconfig
