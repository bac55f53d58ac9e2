// Command thumbnails is an app for tendril: it draws landscapes, queues a job
// for each, and makes a thumbnail for every job that comes back as a POST.
//
// It knows nothing of tendril. It listens on PORT, and it sends with the AWS SDK
// to the queue that the environment names: the same program runs behind the
// worker daemon of Elastic Beanstalk.
//
//	draw a scene -> out/source/007-noon.png -> SendMessage {"image":"007-noon.png","width":240}
//	POST / {"image":"007-noon.png","width":240} -> out/007-noon.png, 200
package main
