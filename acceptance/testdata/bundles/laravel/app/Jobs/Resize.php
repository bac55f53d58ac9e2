<?php

namespace App\Jobs;

class Resize implements \Illuminate\Contracts\Queue\ShouldQueue
{
    public function __construct(public string $picture) {}

    public function handle(): void
    {
        logger()->info('resized '.$this->picture);
    }
}
