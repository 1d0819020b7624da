#!/usr/bin/env python3
"""press_tab.py bash|zsh SCRIPT SECONDS: types each line of standard input and TAB into an interactive shell that has
sourced SCRIPT, and prints the line after completion."""
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios

START = {
    "bash": (["--norc", "--noprofile", "-i"],
             "PS1=; bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; source ./{}; "
             "show() {{ printf '<%s>\\n' \"<$READLINE_LINE>\"; READLINE_LINE=; }}; bind -x '\"\\C-o\": show'"),
    "zsh": (["-f", "-i"],
            "PS1=; unset zle_bracketed_paste; setopt no_prompt_sp no_beep no_auto_menu no_list_ambiguous; "
            "autoload -Uz compinit; compinit -u -D; source ./{}; "
            "show() {{ print -r -- \"<\"\"<$BUFFER>>\"; BUFFER=; zle accept-line }}; zle -N show; bindkey '^O' show"),
}


def main():
    shell, script, seconds = sys.argv[1:]
    options, start = START[shell]
    lines = sys.stdin.read().splitlines()
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(shell, [shell, *options], {**os.environ, "TERM": "dumb"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 500, 0, 0))
    signal.alarm(int(seconds))

    def until(pattern):
        text = ""
        while not (found := re.search(pattern, text, re.DOTALL)):
            text += os.read(terminal, 65536).decode()
        return found

    os.write(terminal, (start.format(script) + "; echo rea''dy\n").encode())
    until("ready\r\n")
    for line in lines:
        os.write(terminal, (line + "\t\x0f").encode())
        print(until("<<(.*?)>>\r\n")[1])
    os.kill(child, signal.SIGKILL)


main()
