package com.example.worker;

import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RestController;

@RestController
class WorkerController {
    @PostMapping(path = "/messages", consumes = "application/json")
    ResponseEntity<Void> message(@RequestHeader("X-Aws-Sqsd-Msgid") String id,
            @RequestHeader("X-Aws-Sqsd-Receive-Count") int receives, @RequestBody Message body) {
        return ResponseEntity.ok().build();
    }

    @PostMapping("/tasks/report")
    ResponseEntity<Void> report(@RequestHeader("X-Aws-Sqsd-Taskname") String task,
            @RequestHeader("X-Aws-Sqsd-Scheduled-At") String at) {
        return ResponseEntity.noContent().build();
    }

    record Message(String order) {}
}
