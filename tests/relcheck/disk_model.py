"""A model of a disk with a write cache: the contents that a folder may have after a power failure.

A file's bytes are safe once fsync has returned, a name once fsync of its folder has returned. Everything
newer is pending, and any subset of it may have reached the disk, in any order. Pending bytes of a file may be
missing, zero, or the disk's previous contents, block by block; pending changes of names apply independently.
"""
import os

BLOCKS = (512, 4096)  # possible numbers of bytes that reach the disk together


class File:
    def __init__(self, content=b""):
        self.content = self.safe = bytes(content)
        self.kept = len(content)  # length of the prefix of safe bytes that is unchanged

    def write(self, offset, bytes_):
        content = self.content.ljust(offset, b"\0")
        self.content = content[:offset] + bytes_ + content[offset + len(bytes_):]
        self.kept = min(self.kept, offset)

    def truncate(self, length):
        self.content = self.content[:length].ljust(length, b"\0")
        self.kept = min(self.kept, length)

    def sync(self):
        self.safe, self.kept = self.content, len(self.content)

    def after_cut(self, random):
        """Random content that the disk may contain. Safe bytes that were not overwritten are unchanged."""
        if self.content == self.safe:
            return self.safe
        how = random.choice(("old", "new", "prefix", "zeros", "blocks", "blocks", "blocks"))
        if how in ("old", "new"):
            return self.safe if how == "old" else self.content
        if how == "prefix":
            return self.content[:random.randint(self.kept, len(self.content))]
        if how == "zeros":
            return self.content[:self.kept] + bytes(len(self.content) - self.kept)
        blocks = self.content[:self.kept] + self.some_blocks(random, self.kept)
        return blocks if random.random() < 0.7 else blocks[:random.randint(self.kept, len(blocks))]

    def some_blocks(self, random, begin):
        """The bytes from `begin` on: each block is old, new, zero, or stale data from another file."""
        size, result = random.choice(BLOCKS), b""
        while begin < len(self.content):
            end = min(begin // size * size + size, len(self.content))
            new, old = self.content[begin:end], self.safe[begin:end].ljust(end - begin, b"\0")
            result += random.choice((new, new, new, old, bytes(len(new)), random.randbytes(len(new))))
            begin = end
        return result


class Link:
    def __init__(self, target):
        self.target = target


class Folder:
    """Maps names to nodes. `pending`: the changes since the last fsync, each as the alternatives given to change()."""

    def __init__(self):
        self.names, self.safe, self.pending = {}, {}, []

    def change(self, *ways):
        """Applies the first of `ways`, which are functions that change a dictionary of names; the others are changes
        that the disk may contain instead."""
        ways[0](self.names)
        self.pending.append(ways)

    def sync(self):
        self.safe, self.pending = dict(self.names), []

    def after_cut(self, random):
        names = dict(self.safe)
        how = random.choice(("none", "all", "some", "some"))
        for ways in self.pending:
            if how == "all" or how == "some" and random.random() < 0.5:
                (ways[0] if how == "all" else random.choice(ways))(names)
        return names


def put(name, node):
    return lambda names: names.__setitem__(name, node)


def drop(name):
    return lambda names: names.pop(name, None)


def both(first, second):
    return lambda names: (first(names), second(names))


class Disk:
    """Replays a log of calls (shim.Call). With `lies`, fsync of a file reports success and does nothing, so a name may
    be on disk before its bytes."""

    def __init__(self, base, lies=False):
        self.root, self.files, self.lies = self.copied(base), {}, lies

    def copied(self, path):
        """A copy of an existing folder; all content and names are safe."""
        folder = Folder()
        for entry in os.scandir(path):
            if entry.is_symlink():
                folder.names[entry.name] = Link(os.readlink(entry.path))
            elif entry.is_dir():
                folder.names[entry.name] = self.copied(entry.path)
            else:
                with open(entry.path, "rb") as file:
                    folder.names[entry.name] = File(file.read())
        folder.sync()
        return folder

    def find(self, path):
        """The folder that contains a path, and the name in it; links on the way are followed."""
        folder, parts = self.root, path.split("/")
        for part in parts[:-1]:
            node = folder.names[part]
            folder = self.node(node.target, folder) if isinstance(node, Link) else node
        return folder, parts[-1]

    def node(self, path, base=None):
        node = base or self.root
        for part in filter(None, path.split("/")):
            node = node.names[part]
            if isinstance(node, Link):
                node = self.node("run/" + node.target)  # the links of a run are relative to its folder
        return node

    def play(self, call, bytes_):
        """Applies a call that succeeded; `bytes_`: the bytes of a write."""
        getattr(self, call.name)(call, bytes_)

    def open(self, call, _):
        if call.path:
            folder, name = self.find(call.path)
            if name not in folder.names:
                folder.change(put(name, File()))
        node = self.node(call.path)
        self.files[call.descriptor] = node
        if call.flags & os.O_TRUNC:
            node.truncate(0)

    def write(self, call, bytes_):
        self.files[call.descriptor].write(call.offset, bytes_)

    def ftruncate(self, call, _):
        self.files[call.descriptor].truncate(call.length)

    def fsync(self, call, _):
        node = self.files[call.descriptor]
        if not (self.lies and isinstance(node, File)):
            node.sync()

    def close(self, call, _):
        self.files.pop(call.descriptor)

    def mkdir(self, call, _):
        folder, name = self.find(call.path)
        folder.change(put(name, Folder()))

    def symlink(self, call, _):
        folder, name = self.find(call.path)
        folder.change(put(name, Link(call.second)))

    def unlink(self, call, _):
        folder, name = self.find(call.path)
        folder.change(drop(name))

    rmdir = unlink

    def rename(self, call, _):
        folder, old = self.find(call.path)
        same, new = self.find(call.second)
        assert folder is same, "a rename between folders is not modelled"
        node = folder.names[old]
        # On a disk without a journal, the new name may exist before the old one is removed.
        folder.change(both(drop(old), put(new, node)), put(new, node))

    def exchange(self, call, _):
        folder, one = self.find(call.path)
        _, two = self.find(call.second)
        first, second = folder.names[one], folder.names[two]
        folder.change(both(put(one, second), put(two, first)))

    def after_cut(self, random):
        """A random state that a power cut may leave: maps paths to bytes, a Link, or None for a folder."""
        state = {}

        def walk(folder, path):
            for name, node in folder.after_cut(random).items():
                if isinstance(node, Folder):
                    state[path + name] = None
                    walk(node, path + name + "/")
                else:
                    state[path + name] = node if isinstance(node, Link) else node.after_cut(random)
        walk(self.root, "")
        return state
