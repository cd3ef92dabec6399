/*
 * main.c - the program `microscope`: start LuaJIT, hand the arguments to microscope.cli.
 *
 * Modules come from this installation's own share/microscope/lua, then from where LuaJIT
 * looks by default; never from the current directory.  When the kernel gave the process more
 * rights than its user has (AT_SECURE), the environment is not asked either.
 *
 * Fails: an error that Lua did not handle is printed with its traceback; the status is 1.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* Search paths: relative patterns would run code from wherever the caller stands. */
static const char SET_PATHS[] =
  "local own = ...\n"
  "local function absolute(patterns)\n"
  "  local kept = {}\n"
  "  for pattern in patterns:gmatch('[^;]+') do\n"
  "    if pattern:sub(1, 1) == '/' then kept[#kept + 1] = pattern end\n"
  "  end\n"
  "  return table.concat(kept, ';')\n"
  "end\n"
  "package.path = own .. '/?.lua;' .. own .. '/?/init.lua;' .. absolute(package.path)\n"
  "package.cpath = absolute(package.cpath)\n";

/* PREFIX/share/microscope/lua, from the program's own place PREFIX/bin/microscope. */
static int own_folder(char *out, size_t size) {
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return errno;
  self[length] = '\0';
  char *prefix = dirname(dirname(self));
  int wrote = snprintf(out, size, "%s/share/microscope/lua", prefix);
  return wrote < 0 || (size_t)wrote >= size ? ENAMETOOLONG : 0;
}

static int with_traceback(lua_State *L) {
  const char *message = lua_tostring(L, 1);
  if (!message) {
    if (luaL_callmeta(L, 1, "__tostring")) return 1;
    message = luaL_typename(L, 1);
  }
  /* One that Lua took at the place of the error says more than one from here. */
  if (strstr(message, "\nstack traceback:")) return 1;
  luaL_traceback(L, L, message, 1);
  return 1;
}

/* Runs under lua_pcall: (argc, argv) as light userdata; gives the exit status. */
static int run(lua_State *L) {
  int argc = (int)lua_tointeger(L, 1);
  char **argv = lua_touserdata(L, 2);
  char own[PATH_MAX];
  int failed = own_folder(own, sizeof own);
  if (failed)
    return luaL_error(L, "cannot find where microscope is installed: %s", strerror(failed));
  luaL_openlibs(L);
  if (luaL_loadstring(L, SET_PATHS) != 0) return lua_error(L);
  lua_pushstring(L, own);
  lua_call(L, 1, 0);

  lua_getglobal(L, "require");
  lua_pushliteral(L, "microscope.cli");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "main");
  lua_createtable(L, argc, 0);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i);
  }
  lua_call(L, 1, 1);
  return 1;
}

/* Arrays that grow past 4 MiB (less than half of the 8 MiB that a conversion may take beside its
 * tables; blocks of rows and what packs them stay below) lie in pages of their own, which grow in
 * place and go when they are freed.  glibc begins so at 128 KiB but raises the limit to 32 MiB with
 * what is freed, and then keeps copies of arrays that grew (mallopt(3), M_MMAP_THRESHOLD). */
static void keep_large_arrays_apart(void) { mallopt(M_MMAP_THRESHOLD, 4 << 20); }

int main(int argc, char **argv) {
  keep_large_arrays_apart();
  lua_State *L = luaL_newstate();
  if (!L) {
    fputs("microscope: internal error: LuaJIT does not start (no memory)\n", stderr);
    return 1;
  }
  if (getauxval(AT_SECURE)) {
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV"); /* no LUA_PATH, LUA_CPATH, LUA_INIT */
  }
  lua_pushcfunction(L, with_traceback);
  lua_pushcfunction(L, run);
  lua_pushinteger(L, argc);
  lua_pushlightuserdata(L, argv);
  int status = 1;
  if (lua_pcall(L, 2, 1, 1) != 0)
    fprintf(stderr, "microscope: internal error: %s\n", lua_tostring(L, -1));
  else
    status = (int)lua_tointeger(L, -1);
  /* What could not be written (a full disk) must not look like a good end. */
  if ((fflush(stdout) != 0 || ferror(stdout)) && status == 0) {
    fprintf(stderr, "microscope: cannot write the output: %s\n", strerror(errno));
    status = 1;
  }
  lua_close(L);
  return status;
}
