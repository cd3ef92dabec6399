microscope report --collapse-recursion --drop 'part5*' --merge commit_Stream_0 --collapse '/^lookup/' --tree --min-percent 20 small.usprof
