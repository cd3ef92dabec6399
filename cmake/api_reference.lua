-- api_reference.lua - the reference of docs/api.md, from the comments of the public API.
--
--   luajit cmake/api_reference.lua          rewrite what stands between the marks
--   luajit cmake/api_reference.lua --check  status 1 and one line when it is stale
--
-- Run in the checkout's root.  Sources: lua/microscope/doc.lua names them.

package.path = "./lua/?.lua;./cmake/?.lua;" .. package.path
local doc = require("microscope.doc")
local reference = require("reference")

reference.put("docs/api.md", doc.markdown(doc.all("lua/microscope")) .. "\n")
