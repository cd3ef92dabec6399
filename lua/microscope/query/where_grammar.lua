--- where_grammar.lua - the language of --where: a text to a tree of tests.
--
--   EXPR  = EXPR or EXPR | EXPR and EXPR | not EXPR | ( EXPR ) | TEST
--   TEST  = FIELD = VALUE | FIELD != VALUE | FIELD ~ PATTERN | FIELD !~ PATTERN
--         | FIELD < VALUE | FIELD <= VALUE | FIELD > VALUE | FIELD >= VALUE
--   FIELD = thread | process | cpu | time | [innermost | outermost] function
--         | [innermost | outermost] module | innermost | outermost | label.NAME
--
-- A value is a word, a text in quotes, a number, a time (1.5s 20ms 7us 9ns), or a range A..B.
-- A pattern is /regex/, a glob when it has * or ?, else a text that is to be contained.
-- "not" binds closer than "and", "and" closer than "or".
--
-- A tree is { op = "and" | "or", a, b }, { op = "not", a } or a test:
-- { op = "test", field =, scope = "any" | "innermost" | "outermost", label = name or nil,
--   compare = "=" | "~" | "<" | "<=" | ">" | ">=", value =, column = }, where value is a text, a
-- number, or { from, to } (times in ns).

local lpeg = require("lpeg")

local pattern = require("microscope.query.pattern")

local M = {}

local P, R, S, V = lpeg.P, lpeg.R, lpeg.S, lpeg.V
local C, Cc, Cp, Ct, Cmt, Cg = lpeg.C, lpeg.Cc, lpeg.Cp, lpeg.Ct, lpeg.Cmt, lpeg.Cg

--- How many tests an expression may have: two locals of the loop it becomes for each, of which
-- LuaJIT has 200 in a function.
M.TESTS = 60

-- What a wrong expression raises.
local function raise(column, format, ...)
  error({ column = column, message = format:format(...) }, 0)
end

local FIELDS = "thread, process, cpu, time, function, module, innermost, outermost and label.NAME"

local space = S(" \t\n\r") ^ 0
local letter = R("az", "AZ", "09") + "_"

local function keyword(word) return P(word) * -letter * space end

-- The rest of the text fails here, with what should have stood.
local function expected(what)
  return Cmt(Cp(), function(_, _, at) raise(at, "expected %s", what) end)
end

local function unescape(text) return (text:gsub("\\(.)", "%1")) end

local function quoted(quote)
  local body = C((P("\\") * 1 + (1 - S(quote .. "\\"))) ^ 0) / unescape
  return P(quote) * body * (P(quote) + expected("the closing " .. quote))
end

local text = Cg(quoted('"') + quoted("'"), "text") * Cg(Cc(true), "quoted")
local regex = P("/") * ((P("\\") * 1) + (1 - S("/\\"))) ^ 1 * "/"
local word = (1 - S(" \t\n\r()=~<>!\"'")) ^ 1
local value = Ct(Cg(Cp(), "column") * (text + Cg(C(regex * #(S(" \t\n\r)") + -1)), "text")
  + Cg(C(word), "text"))) * space

local UNITS = { s = 1e9, ms = 1e6, us = 1e3, ns = 1 }

local function time_of(token, column)
  local number, unit = token:match("^(%d+%.?%d*)(%a+)$")
  if not number or not UNITS[unit] then
    raise(column, "'%s' is no time; write it as 2s, 1.5ms, 20us or 300ns", token)
  end
  local ns = math.floor(tonumber(number) * UNITS[unit] + 0.5)
  if ns >= 2 ^ 64 then raise(column, "'%s' is 2^64 ns or more", token) end
  return ns
end

local function number_of(token, column)
  local number = token:match("^%d+$") and tonumber(token)
  if not number then raise(column, "'%s' is no whole number", token) end
  return number
end

-- "A..B" by what its ends are.
local function range_of(token, column, convert)
  local from, to = token:match("^(.-)%.%.(.*)$")
  if not from then return nil end
  local range = { convert(from, column), convert(to, column + #from + 2) }
  if range[2] < range[1] then raise(column, "the range '%s' ends before it begins", token) end
  return range
end

local function takes(test, operators)
  if not operators:find(" " .. test.compare .. " ", 1, true) then
    local field = test.label and "label." .. test.label or test.field
    raise(test.operator_column, "%s takes%s", field, operators:gsub(" ~ ", " ~ !~ ")
      :gsub(" = ", " = != "):gsub("%s+$", ""):gsub(" ([^ ]+)$", " and %1"))
  end
end

local function matcher(test, token)
  if not token.quoted and pattern.regex_of(token.text) then
    local matches, why = pattern.regex(pattern.regex_of(token.text))
    if not matches then
      raise(token.column, "'%s' is no regular expression: %s", token.text, why)
    end
  end
  test.value, test.is_regex = token.text, not token.quoted and pattern.regex_of(token.text) ~= nil
end

local function check_name(test, token)
  takes(test, " = ~ ")
  if test.compare == "~" then return matcher(test, token) end
  test.value = not token.quoted and test.by_number and tonumber(token.text:match("^%d+$"))
    or token.text
end

local CHECKS = {}

function CHECKS.time(test, token)
  local range = range_of(token.text, token.column, time_of)
  if not range and test.compare == "=" then
    raise(token.column, "time = takes a range, as 2s..3.5s")
  end
  takes(test, range and " = " or " < <= > >= ")
  test.value = range or time_of(token.text, token.column)
end

function CHECKS.cpu(test, token)
  local range = range_of(token.text, token.column, number_of)
  takes(test, range and " = " or " = < <= > >= ")
  test.value = range or number_of(token.text, token.column)
end

function CHECKS.label(test, token)
  takes(test, " = ~ < <= > >= ")
  if test.compare == "~" then return matcher(test, token) end
  test.value = token.text
  if test.compare ~= "=" then
    test.value = tonumber(token.text)
    if not test.value then raise(token.column, "'%s' is no number", token.text) end
  end
end

CHECKS["function"], CHECKS.module = check_name, check_name

local function check_numbered(test, token)
  test.by_number = true
  check_name(test, token)
  test.by_number = nil
end

CHECKS.thread, CHECKS.process = check_numbered, check_numbered

-- A test of its pieces; "!=" and "!~" are the negation of "=" and "~".
local function make_test(field, operator_column, operator, token)
  local negated = operator:sub(1, 1) == "!"
  local test = { op = "test", field = field.field, scope = field.scope or "any",
    label = field.label, compare = negated and operator:sub(2) or operator, column = field.column,
    operator_column = operator_column }
  CHECKS[test.field](test, token)
  test.operator_column = nil
  return negated and { op = "not", test } or test
end

local function fold(op)
  return function(first, ...)
    for i = 1, select("#", ...) do first = { op = op, first, (select(i, ...)) } end
    return first
  end
end

local function field(name, pattern_of) return Cg(pattern_of * Cc(name), "field") end

local scoped = Cg(C(P("innermost") + "outermost"), "scope") * -letter * space
  * (field("function", keyword("function")) + field("module", keyword("module"))
    + Cg(Cc("function"), "field"))
local label = P("label.") * Cg(quoted('"') + quoted("'") + C((letter + S("-:/.")) ^ 1), "label")
  * Cg(Cc("label"), "field") * space
local fields = scoped + label
for _, name in ipairs { "thread", "process", "cpu", "time", "function", "module" } do
  fields = fields + field(name, keyword(name))
end

local operators = C(P("!=") + "!~" + "<=" + ">=" + S("=~<>")) * space

local grammar = P {
  space * V("either") * (-1 + expected("'and', 'or' or the end")),
  either = V("both") * (keyword("or") * V("both")) ^ 0 / fold("or"),
  both = V("one") * (keyword("and") * V("one")) ^ 0 / fold("and"),
  one = keyword("not") * V("one") / function(a) return { op = "not", a } end
    + P("(") * space * V("either") * (P(")") + expected("')'")) * space + V("test"),
  test = (Ct(Cg(Cp(), "column") * fields) + expected("one of " .. FIELDS))
    * Cp() * (operators + expected("= != ~ !~ < <= > or >="))
    * (value + expected("a value")) / make_test,
}

-- No recursion: a long row of "or" is as deep as it is long.
local function count(ast)
  local pending, tests = { ast }, 0
  while #pending > 0 do
    local node = table.remove(pending)
    if node.op == "test" then tests = tests + 1 end
    pending[#pending + 1] = node[1]
    pending[#pending + 1] = node[2]
  end
  return tests
end

--- The tree of an expression, or nil and {message=, column=}: what is wrong with it, and at which
-- byte (from 1).
function M.parse(expression)
  local ok, ast = pcall(lpeg.match, grammar, expression)
  if ok and ast and count(ast) <= M.TESTS then return ast end
  if ok then
    return nil, { column = 1, message = ("it has more than %d tests"):format(M.TESTS) }
  end
  if type(ast) == "table" then return nil, ast end
  return nil, { column = 1, message = "it is too long, or nested too deeply" }
end

return M
