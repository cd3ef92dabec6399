-- OpenTelemetry profiles as others write them: texts that protoc makes messages of, by the numbers
-- that the protocol's releases give the fields.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")

-- The protocol's messages; a sample's three lists are what releases differ in.
local PROTO = [[
syntax = "proto3";
message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3;
  double double_value = 4; int32 string_value_strindex = 8; } }
message KeyValue { string key = 1; AnyValue value = 2; }
message Resource { repeated KeyValue attributes = 1; }
message Scope { string name = 1; }
message ValueType { int32 type_strindex = 1; int32 unit_strindex = 2; }
message Sample { int32 stack_index = 1; repeated int32 attribute_indices = ATTRIBUTES;
  int32 link_index = LINK; repeated int64 values = VALUES;
  repeated fixed64 timestamps_unix_nano = 5; }
message Profile { ValueType sample_type = 1; repeated Sample samples = 2;
  fixed64 time_unix_nano = 3; uint64 duration_nano = 4; ValueType period_type = 5;
  int64 period = 6; bytes original_payload = 10; }
message Mapping { uint64 memory_start = 1; uint64 memory_limit = 2; uint64 file_offset = 3;
  int32 filename_strindex = 4; repeated int32 attribute_indices = 5; }
message Line { int32 function_index = 1; int64 line = 2; }
message Location { int32 mapping_index = 1; uint64 address = 2; repeated Line lines = 3; }
message Function { int32 name_strindex = 1; int32 system_name_strindex = 2;
  int32 filename_strindex = 3; int64 start_line = 4; }
message Stack { repeated int32 location_indices = 1; }
message Attribute { int32 key_strindex = 1; AnyValue value = 2; int32 unit_strindex = 3; }
message Link { bytes trace_id = 1; }
message Dictionary { repeated Mapping mapping_table = 1; repeated Location location_table = 2;
  repeated Function function_table = 3; repeated Link link_table = 4;
  repeated string string_table = 5; repeated Attribute attribute_table = 6;
  repeated Stack stack_table = 7; }
message ScopeProfiles { Scope scope = 1; repeated Profile profiles = 2; }
message ResourceProfiles { Resource resource = 1; repeated ScopeProfiles scope_profiles = 2; }
message ProfilesData { repeated ResourceProfiles resource_profiles = 1; Dictionary dictionary = 2; }
]]
local LAYOUTS = { now = { ATTRIBUTES = 2, LINK = 3, VALUES = 4 },
  ["1.9"] = { ATTRIBUTES = 3, LINK = 4, VALUES = 2 } }

local DICTIONARY = [[
dictionary {
  mapping_table {} mapping_table { memory_start: 4096 memory_limit: 8192 file_offset: 512
    filename_strindex: 1 attribute_indices: 1 }
  location_table {} location_table { mapping_index: 1 address: 4100
    lines { function_index: 1 line: 7 } lines { function_index: 2 line: 9 } }
  location_table { mapping_index: 1 address: 9000 } location_table { address: 77 }
  function_table {} function_table { name_strindex: 2 filename_strindex: 4 start_line: 5 }
  function_table { name_strindex: 3 system_name_strindex: 5 }
  string_table: "" string_table: "/bin/app" string_table: "inner" string_table: "outer"
  string_table: "a.c" string_table: "_Zouter" string_table: "process.executable.build_id.gnu"
  string_table: "thread.name" string_table: "route" string_table: "cpu" string_table: "nanoseconds"
  string_table: "bytes" string_table: "size"
  attribute_table {} attribute_table { key_strindex: 6 value { string_value: "00aaff11" } }
  attribute_table { key_strindex: 7 value { string_value: "worker" } }
  attribute_table { key_strindex: 8 value { string_value_strindex: 1 } }
  attribute_table { key_strindex: 12 value { int_value: -3 } unit_strindex: 11 }
  attribute_table { key_strindex: 8 value { double_value: 1.5 } }
  link_table {} stack_table {} stack_table { location_indices: [1, 2, 3] }
  stack_table { location_indices: [1] }
}]]
local PROFILE = [[
resource_profiles {
  resource { attributes { key: "process.pid" value { int_value: 42 } }
    attributes { key: "service" value { string_value: "shop" } } }
  scope_profiles { scope { name: "agent" } profiles {
    sample_type { type_strindex: 9 unit_strindex: 10 } time_unix_nano: 1000 duration_nano: 500
    period_type { type_strindex: 9 unit_strindex: 10 } period: 50
    SAMPLES } }
}]]
local SAMPLES = [[
    samples { stack_index: 1 attribute_indices: [2, 3, 4] link_index: 1 values: [50, 100]
      timestamps_unix_nano: [1100, 900] }
    samples { stack_index: 2 attribute_indices: [5] values: [150] }]]

describe("convert from OpenTelemetry profiles", function()
  local folder
  setup(function()
    folder = helper.folder()
    for name, numbers in pairs(LAYOUTS) do
      helper.write(folder .. "/" .. name .. ".proto", (PROTO:gsub("[AVL][A-Z]+", numbers)))
    end
  end)
  teardown(function() helper.remove(folder) end)

  -- The message that a text is, in a file.
  local function encode(layout, samples, dictionary)
    helper.write(folder .. "/text", (PROFILE:gsub("SAMPLES", samples))
      .. (dictionary or DICTIONARY))
    local _, err, status = helper.run(("protoc --encode=ProfilesData %s.proto <text >in.otlp")
      :format(layout), folder)
    assert(status == 0, err)
  end

  local function labels(cap, sample)
    local out = {}
    for i = 0, cap:rows("sample_labels") - 1 do
      if cap:array("sample_labels", "sample")[i] == sample then
        local l = cap:array("sample_labels", "label")[i]
        local kind = cap:array("labels", "kind")[l]
        out[#out + 1] = ("%s=%s%s"):format(cap:string(cap:array("labels", "key")[l]), kind == 0
          and cap:string(cap:array("labels", "text")[l])
          or tostring(require("ffi").cast("int64_t", cap:array("labels", "number")[l])),
          cap:string(cap:array("labels", "unit")[l]))
      end
    end
    table.sort(out)
    return table.concat(out, " ")
  end

  for layout in pairs(LAYOUTS) do
    it("reads samples as release " .. layout .. " has them", function()
      encode(layout, SAMPLES)
      local said = kit.convert(folder, "in.otlp in.usprof")
      assert.matches("left out of in.otlp: links of 1 samples to spans; 1 attributes that are no",
        said)
      assert.matches("in.otlp: 1 times before the first profile's start are taken as that", said)
      assert.same({ cpu = { ["[unmapped 0x4d];[unmapped 0x2328];outer;inner"] = 150,
        ["outer;inner"] = 150 } }, kit.weights(folder .. "/in.usprof"))
      assert(capture.with(folder .. "/in.usprof", function(cap)
        assert.equal("route=/bin/app service=shop size=-3LLbytes", labels(cap, 0))
        assert.equal("service=shop", labels(cap, 2))
        assert.equal(50ULL, cap:array("sources", "period")[0])
        assert.equal(0, cap:array("sources", "unit")[0])
        assert.equal(42, cap:array("processes", "pid")[0])
        assert.equal("worker", cap:string(cap:array("threads", "name")
          [cap:array("samples", "thread")[0]]))
        assert.equal(100ULL, cap:array("samples", "time_ns")[0])
        assert.equal(0ULL, cap:array("samples", "time_ns")[1])
        assert.equal(1000ULL, cap:array("clocks", "realtime_ns")[0])
        assert.equal(500ULL, cap:array("clocks", "duration_ns")[0])
        assert.equal("00aaff11", cap:string(cap:array("modules", "build_id")[0]))
        local l = cap:array("lines", "location")[0]
        assert.equal(5, cap:array("locations", "kind")[l])
        return assert.equal(516ULL, cap:array("locations", "offset")[l])
      end))
    end)
  end

  it("takes a time without a value for one", function()
    encode("now", "samples { stack_index: 2 timestamps_unix_nano: [1100, 1200] }")
    kit.convert(folder, "in.otlp in.usprof")
    assert.same({ cpu = { ["outer;inner"] = 2 } }, kit.weights(folder .. "/in.usprof"))
  end)

  it("tells values from attributes by what they are, or refuses", function()
    local both = "samples { stack_index: 2 LIST timestamps_unix_nano: [1100] }"
    encode("1.9", (both:gsub("LIST", "values: 50")))
    kit.convert(folder, "in.otlp in.usprof")
    assert.same({ cpu = { ["outer;inner"] = 50 } }, kit.weights(folder .. "/in.usprof"))
    encode("1.9", (both:gsub("LIST", "values: 3")))
    assert.matches("its samples fit two versions", kit.refused(folder, "in.otlp in.usprof"))
    encode("now", (both:gsub("LIST", "attribute_indices: [2, 3]")))
    kit.convert(folder, "in.otlp in.usprof")
    assert.same({ cpu = { ["outer;inner"] = 1 } }, kit.weights(folder .. "/in.usprof"))
  end)

  it("refuses indexes that are none, with the byte", function()
    for samples, words in pairs {
      ["samples { stack_index: 9 values: 1 }"] = "it names stack 9, the dictionary has 3",
      ["samples { stack_index: -1 values: 1 }"] = "it names no stack that can be",
      ["samples { stack_index: 2 values: 1 attribute_indices: 60 }"] =
        "it names attribute 60, the dictionary has 6",
      ["samples { stack_index: 2 values: [1, 2] timestamps_unix_nano: [5] }"] =
        "a sample of 2 values and 1 times",
      ["samples { stack_index: 2 values: -1 }"] = "a negative value",
    } do
      encode("now", samples)
      local err = kit.refused(folder, "in.otlp in.usprof")
      assert.matches("in.otlp: byte %d+: ", err)
      assert.is_truthy(err:find(words, 1, true), err)
    end
    for from, words in pairs {
      ["function_index: 2"] = "it names function 99, the dictionary has 3",
      ["location_indices: %[1%]"] = "it names location 99, the dictionary has 4",
      ["mapping_index: 1"] = "it names mapping 99, the dictionary has 2",
      ["name_strindex: 2"] = "it names string 99, the dictionary has 13",
    } do
      encode("now", SAMPLES, (DICTIONARY:gsub(from, (from:gsub("%%", ""):gsub("%d", "99")), 1)))
      local err = kit.refused(folder, "in.otlp in.usprof")
      assert.is_truthy(err:find(words, 1, true), err)
    end
  end)

  it("is known by its bytes, also where the dictionary comes first", function()
    encode("now", SAMPLES)
    local text = helper.read(folder .. "/in.otlp")
    local convert = require("microscope.convert")
    assert.equal("otlp", convert.for_reading(folder .. "/in.otlp").name)
    helper.write(folder .. "/text", DICTIONARY)
    helper.run("protoc --encode=ProfilesData now.proto <text >first", folder)
    local first = helper.read(folder .. "/first")
    helper.write(folder .. "/turned", first .. text:sub(1, #text - #first))
    assert.equal("otlp", convert.for_reading(folder .. "/turned").name)
    kit.convert(folder, "turned turned.usprof")
    kit.convert(folder, "in.otlp in.usprof")
    assert.same(kit.weights(folder .. "/in.usprof"), kit.weights(folder .. "/turned.usprof"))
  end)
end)
