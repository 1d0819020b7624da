#pragma once
/// The list of plugins that the user trusts: those that the user named in a config or on the
/// command line, or accepted with --trust-plugins. The origin of a run folder is unknown, so a
/// library that only a run's config names is loaded only if it is listed.
///
/// The list is the file heed/trusted in $XDG_STATE_HOME (by default ~/.local/state). Its lines are
/// those of sha256sum, "SHA-256  path". The path counts too, because a library may load others from
/// its own folder ($ORIGIN).
#include <filesystem>
#include <string>

namespace heed {

/// Makes this process accept every library.
void trust_all_plugins();
bool trusts_all_plugins();

/// Whether the library with this SHA-256 at this absolute path is listed. A list that cannot be
/// read counts as empty.
bool is_trusted_plugin(const std::string& sum, const std::filesystem::path& place);

/// Adds a line to the list, unless it contains the line, and syncs it to disk; several processes may
/// do this at the same time. Throws Error(io) with the reason if the list cannot be written.
void list_trusted_plugin(const std::string& sum, const std::filesystem::path& place);

}  // namespace heed
