// Package getconfig answers what scripts ask Elastic Beanstalk's tool get-config.
//
// Hooks, build commands and apps that were written for Elastic Beanstalk call
// /opt/elasticbeanstalk/bin/get-config to learn environment properties, option settings
// and paths. The running environment writes the answers into a [Folder] in its data
// directory, and the command get-config reads them from there:
//
//	environment --> Folder.Publish --> get-config/v7/facts.json   hooks, build commands
//	                                   get-config/v7/app.json     the app, if it is another user
//	                                   get-config/current -> v7   everybody else
//	                                   get-config/bin/get-config -> tendril
//
//	get-config environment -k NAME --> Open --> Facts.Answer --> Format
//
// Each version of the app has answers of its own, so that a hook of a version that is being
// deployed learns the settings of that version while the old one still serves. A process
// finds them through the variable [FileVariable], which [Folder.Environ] sets, and the
// command through PATH. Whoever has no such variable, as a person at a shell, gets the
// answers of the version that serves.
//
// # Invariants
//
// The answers contain environment properties, which may be secret: each file has mode 0600,
// and belongs to the user that runs tendril or to the app's user, and to nobody else. What
// root reads no other user can write. A reader sees old or new answers, never a part. The
// folder is removed with the end of the environment. Without a data directory it is a
// temporary one, which its process locks; the next start removes those whose process was
// killed.
//
// The commands, options and forms of output are those that Amazon documents as "Platform
// script tools for your Elastic Beanstalk environments". meta and its key sqsdconfig are not
// documented there; their form is that of the settings file of aws-sqsd, under whose keys
// the values stand.
package getconfig
