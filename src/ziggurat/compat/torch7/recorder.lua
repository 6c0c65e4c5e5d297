-- Records what a network file of Torch builds, and returns it as JSON. Called as a chunk with (text, parameters as a table).
--
-- The file gets an environment of its own: arithmetic, strings and tables of Lua, and the names of Torch, whose functions
-- only note what was asked for. Everything used here is held in locals, so that the file cannot replace it.
local source, parameters, runs_hook = ...
local assert, error, getinfo, getmetatable, ipairs, loadstring, next, pairs = assert, error, debug.getinfo, getmetatable, ipairs, loadstring, next, pairs
local pcall, rawget, rawset, select, setfenv, setmetatable, tonumber, tostring, type, unpack, xpcall = pcall, rawget, rawset, select, setfenv, setmetatable, tonumber, tostring, type, unpack, xpcall
local concat, format, floor, gsub, byte = table.concat, string.format, math.floor, string.gsub, string.byte
local insert, remove, sort, sqrt, min, find, match = table.insert, table.remove, table.sort, math.sqrt, math.min, string.find, string.match
local MOST, DEEPEST = 5000, 60
local CHUNK = "network.lua"

-- A tail call, such as `return nn.Linear(3)`, leaves no frame of the file: then it is the line that ran last.
local last_line = 0
debug.sethook(function(_, line)
  if getinfo(2, "S").source == "=" .. CHUNK then last_line = line end
end, "l")

local function line_of_file()
  for level = 2, 60 do
    local info = getinfo(level, "Sl")
    if info == nil then break end
    if info.source == "=" .. CHUNK then return info.currentline end
  end
  return last_line
end

local function fail(text, line)
  error({ told = true, text = text, line = line or line_of_file() }, 0)
end

---- tensors: weights that a file fills, labels that a hook changes

local Tensor = {}
local tensor_meta = {}

local function tensor(fields)
  fields.ops = {}
  return setmetatable(fields, tensor_meta)
end

local function number_of(value, usual)
  if value == nil then return usual end
  if type(value) ~= "number" then fail("a number is expected, and not a " .. type(value)) end
  return value
end

local function noted(name, count, usual)
  Tensor[name] = function(self, ...)
    local op = { name, line = line_of_file() }
    for place = 1, count do op[place + 1] = number_of((select(place, ...)), usual[place]) end
    for _, each in ipairs(rawget(self, "targets") or { self }) do
      local ops = rawget(each, "ops")
      if #ops >= 50 then fail("weights are changed more than 50 times") end
      ops[#ops + 1] = op
    end
    return self
  end
end
noted("normal", 2, { 0, 1 })
noted("uniform", 2, { 0, 1 })
noted("fill", 1, { 0 })
noted("zero", 0, {})
noted("mul", 1, { 1 })
noted("div", 1, { 1 })
noted("add", 1, { 0 })
noted("sub", 1, { 0 })
for _, name in ipairs({ "clone", "float", "double", "cuda", "contiguous", "typeAs", "long", "int", "byte" }) do
  Tensor[name] = function(self) return self end
end
function Tensor:size(axis)
  local shape = rawget(self, "shape") or fail("the size of this tensor is not known")
  if axis == nil then return setmetatable({ unpack(shape) }, { __index = { size = function(s) return #s end } }) end
  return shape[axis]
end
function Tensor:dim() return #(rawget(self, "shape") or {}) end
Tensor.nDimension = Tensor.dim
function Tensor:nElement()
  local count = 1
  for _, side in ipairs(rawget(self, "shape") or fail("the size of this tensor is not known")) do count = count * side end
  return count
end
Tensor.numel = Tensor.nElement
-- `label:eq(0)` chooses numbers, and `label:eq(0):fill(-1)` is what they become where it is set by the same choice.
local function filled(mask, value)
  mask.filled = number_of(value)
  return mask
end
function Tensor:eq(value) return { mask = self, value = number_of(value), fill = filled } end
tensor_meta.__index = Tensor
tensor_meta.__newindex = function(self, key, value)
  if type(key) == "table" and rawget(key, "mask") == self then
    local ops = rawget(self, "ops")
    if type(value) == "table" and rawget(value, "mask") == self and rawget(value, "value") == rawget(key, "value") then
      value = rawget(value, "filled")
    end
    ops[#ops + 1] = { "replace", rawget(key, "value"), number_of(value), line = line_of_file() }
    return
  end
  fail("single numbers of a tensor are set, which is not known to an import")
end
local function arithmetic(name, inverse)
  return function(one, other)
    if type(other) == "number" then return Tensor[name](one, other) end
    if type(one) == "number" and not inverse then return Tensor[name](other, one) end
    fail("two tensors are computed with, which is not known to an import")
  end
end
tensor_meta.__mul, tensor_meta.__add = arithmetic("mul"), arithmetic("add")
tensor_meta.__sub, tensor_meta.__div = arithmetic("sub", true), arithmetic("div", true)

---- modules

local Module, module_meta, node_meta = {}, {}, {}
local made = 0

local function is_module(value) return type(value) == "table" and getmetatable(value) == module_meta end
local function is_node(value) return type(value) == "table" and getmetatable(value) == node_meta end

local WEIGHTED = {
  SpatialConvolution = { "nInputPlane", "nOutputPlane", "kW", "kH", "dW", "dH", "padW", "padH", "groups" },
  SpatialConvolutionMM = { "nInputPlane", "nOutputPlane", "kW", "kH", "dW", "dH", "padW", "padH" },
  SpatialDilatedConvolution = { "nInputPlane", "nOutputPlane", "kW", "kH", "dW", "dH", "padW", "padH", "dilationW", "dilationH" },
  SpatialFullConvolution = { "nInputPlane", "nOutputPlane", "kW", "kH", "dW", "dH", "padW", "padH", "adjW", "adjH" },
  TemporalConvolution = { "inputFrameSize", "outputFrameSize", "kW", "dW" },
  Linear = { "inputSize", "outputSize" },
  BatchNormalization = { "nFeature" },
  SpatialBatchNormalization = { "nFeature" },
  LookupTable = { "nIndex", "nOutput" },
  PReLU = { "nOutputPlane" },
}

local function shape_of(kind, fields)
  if kind == "Linear" then return { fields.outputSize, fields.inputSize }, { fields.outputSize } end
  if kind == "TemporalConvolution" then return { fields.outputFrameSize, fields.inputFrameSize * fields.kW }, { fields.outputFrameSize } end
  if kind == "SpatialFullConvolution" then return { fields.nInputPlane, fields.nOutputPlane, fields.kH, fields.kW }, { fields.nOutputPlane } end
  if fields.nFeature then return { fields.nFeature }, { fields.nFeature } end
  if kind == "LookupTable" then return { fields.nIndex, fields.nOutput } end
  if kind == "PReLU" then return { fields.nOutputPlane == 0 and 1 or fields.nOutputPlane } end
  return { fields.nOutputPlane, fields.nInputPlane / (fields.groups or 1), fields.kH, fields.kW }, { fields.nOutputPlane }
end

local function new_module(library, kind, ...)
  made = made + 1
  if made > MOST then fail("a network has at most " .. MOST .. " modules") end
  local count = select("#", ...)
  local self = { id = made, package = library, kind = kind, args = { ... }, count = count, line = line_of_file(), modules = {}, calls = {} }
  local names = WEIGHTED[kind]
  if names then
    for place, name in ipairs(names) do
      local value = (select(place, ...))
      if type(value) == "number" then self[name] = value end
    end
    if kind == "PReLU" then self.nOutputPlane = self.nOutputPlane or 0 end
    for place = 1, kind == "PReLU" and 0 or (find(kind, "Convolution") and (kind == "TemporalConvolution" and 3 or 4) or #names) do
      if not self[names[place]] then fail("nn." .. kind .. " has the number `" .. names[place] .. "` as argument " .. place) end
    end
    if find(kind, "Spatial.*Convolution") then
      self.dW, self.dH, self.padW, self.padH = self.dW or 1, self.dH or 1, self.padW or 0, self.padH or self.padW or 0
    end
    if kind == "TemporalConvolution" then self.dW = self.dW or 1 end
    local weight, bias = shape_of(kind, self)
    self.weight, self.gradWeight = tensor({ shape = weight }), tensor({ shape = weight })
    if bias and not (kind == "Linear" and (select(3, ...)) == false) then
      self.bias, self.gradBias = tensor({ shape = bias }), tensor({ shape = bias })
    end
    if self.nFeature then
      self.running_mean, self.running_var = tensor({ shape = weight }), tensor({ shape = weight })
      if (select(4, ...)) == false then self.weight, self.bias = nil, nil end
    end
  end
  return setmetatable(self, module_meta)
end

local function module_of(value)
  if not is_module(value) then fail("a module of nn is expected, and not a " .. type(value)) end
  return value
end

function Module:add(module, weight)
  insert(self.modules, module_of(module))
  if self.kind == "ParallelCriterion" then -- its arguments: whether all learn one target, and the weight of each
    if self.count == 0 then self.args, self.count = { false }, 1 end
    self.count = self.count + 1
    self.args[self.count] = weight or 1
  end
  return self
end
function Module:insert(module, place)
  place = place or #self.modules + 1
  if place < 1 or place > #self.modules + 1 then fail("insert names a place beyond the modules") end
  insert(self.modules, place, module_of(module))
  return self
end
function Module:remove(place)
  if place ~= nil and (place < 1 or place > #self.modules) then fail("remove names a place beyond the modules") end
  return remove(self.modules, place)
end
function Module:get(place)
  local found = self.modules[place < 0 and #self.modules + 1 + place or place]
  return found or fail("get(" .. tostring(place) .. ") names a place beyond the " .. #self.modules .. " modules")
end
function Module:size() return #self.modules end
function Module:listModules()
  local found = {}
  local function walk(module, depth)
    if depth > DEEPEST then fail("modules are nested too deeply") end
    found[#found + 1] = module
    for _, each in ipairs(module.modules) do walk(each, depth + 1) end
  end
  walk(self, 0)
  return found
end
function Module:apply(change)
  for _, each in ipairs(self:listModules()) do change(each) end
  return self
end
function Module:applyToModules(change)
  for _, each in ipairs(self.modules) do change(each) end
end
function Module:findModules(name)
  local found, owners = {}, {}
  for _, each in ipairs(self:listModules()) do
    if each.package .. "." .. each.kind == name or "nn." .. each.kind == name then
      found[#found + 1], owners[#owners + 1] = each, self
    end
  end
  return found, owners
end
function Module:parameters()
  local found, gradients = {}, {}
  for _, each in ipairs(self:listModules()) do
    for _, name in ipairs({ "weight", "bias" }) do
      if each[name] then
        found[#found + 1] = each[name]
        gradients[#gradients + 1] = tensor({ shape = rawget(each[name], "shape") })
      end
    end
  end
  return found, gradients
end
function Module:getParameters()
  return tensor({ targets = (self:parameters()) }), tensor({})
end
function Module:reset(deviation)
  for _, each in ipairs(self:listModules()) do
    for _, name in ipairs({ "weight", "bias" }) do
      if each[name] and not each.nFeature and each.kind ~= "PReLU" then
        if deviation then each[name]:uniform(-deviation * sqrt(3), deviation * sqrt(3)) else rawset(each[name], "ops", {}) end
      end
    end
  end
  return self
end
function Module:noBias()
  self.bias, self.gradBias = nil, nil
  return self
end
function Module:clone(...)
  local shared = select("#", ...) > 0
  local copies = {}
  local function copy(value, depth)
    if depth > DEEPEST * 3 then fail("what is cloned is nested too deeply") end
    if type(value) ~= "table" then return value end
    if copies[value] then return copies[value] end
    local found = {}
    copies[value] = found
    for key, each in next, value do found[key] = copy(each, depth + 1) end
    if is_module(value) then
      made = made + 1
      if made > MOST then fail("a network has at most " .. MOST .. " modules") end
      found.id = made
      if shared then found.shares = value.shares or value.id end
    end
    return setmetatable(found, getmetatable(value))
  end
  return copy(self, 0)
end
function Module:share(other, ...)
  local own, others = self:listModules(), module_of(other):listModules()
  if #own ~= #others then fail("share is called for modules of another structure") end
  for place, each in ipairs(own) do each.shares = others[place].shares or others[place].id end
  return self
end
for _, name in ipairs({ "cuda", "float", "double", "training", "evaluate", "type", "zeroGradParameters", "fastest", "setMode", "lazy", "resetMode", "clearState" }) do
  Module[name] = function(self) return self end
end
for _, name in ipairs({ "ceil", "floor", "setNumInputDims", "setCountExcludePad", "setCountIncludePad", "inplace" }) do
  Module[name] = function(self, value)
    self.calls[name] = value == nil and true or value
    return self
  end
end

module_meta.__index = Module
module_meta.__tostring = function(self) return self.package .. "." .. self.kind end
module_meta.__call = function(self, given)
  local inputs = {}
  if is_node(given) then
    inputs[1] = given
  elseif type(given) == "table" then
    for place, each in ipairs(given) do
      if not is_node(each) then fail("a module is called with nodes of nngraph") end
      inputs[place] = each
    end
  elseif given ~= nil then
    fail("a module is called with nodes of nngraph")
  end
  return setmetatable({ module = self, inputs = inputs, line = line_of_file() }, node_meta)
end
module_meta.__unm = function(self) return self() end
module_meta.__sub = function(one, other) return module_of(other)(is_module(one) and one() or one) end
node_meta.__sub = function(one, other) return module_of(other)(one) end
node_meta.__index = {
  split = function(self, count)
    local found = {}
    for place = 1, count do found[place] = setmetatable({ part = place, inputs = { self }, line = line_of_file() }, node_meta) end
    return unpack(found)
  end,
  annotate = function(self) return self end,
}

---- libraries

local KNOWN = {
  "Sequential", "Parallel", "Concat", "DepthConcat", "ConcatTable", "ParallelTable", "JoinTable", "SplitTable", "NarrowTable",
  "SelectTable", "FlattenTable", "CAddTable", "CSubTable", "CMulTable", "CMaxTable", "Narrow", "Select", "SpatialConvolution",
  "SpatialConvolutionMM", "SpatialDilatedConvolution", "SpatialFullConvolution", "TemporalConvolution", "TemporalMaxPooling",
  "SpatialMaxPooling", "SpatialAveragePooling", "SpatialAdaptiveMaxPooling", "SpatialAdaptiveAveragePooling",
  "SpatialZeroPadding", "SpatialCrossMapLRN", "BatchNormalization", "SpatialBatchNormalization", "SpatialDropout", "Dropout",
  "Linear", "View", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "MulConstant", "AddConstant", "ReLU", "ReLU6", "PReLU",
  "ELU", "LeakyReLU", "Threshold", "HardTanh", "SoftPlus", "Tanh", "Sigmoid", "Abs", "Exp", "Square", "Sqrt", "Power", "SoftMax",
  "SpatialSoftMax", "SoftSign", "LogSigmoid", "Log", "LogSoftMax", "SpatialLogSoftMax", "OneHot", "LookupTable", "Identity", "Contiguous", "Copy", "gModule",
  "DataParallelTable", "ClassNLLCriterion", "CrossEntropyCriterion", "SpatialClassNLLCriterion", "SpatialCrossEntropyCriterion",
  "MSECriterion", "BCECriterion", "AbsCriterion", "SmoothL1Criterion", "CosineEmbeddingCriterion", "MarginRankingCriterion",
  "ParallelCriterion",
}
local RENAMED = { SpatialCrossResponseNormalization = "SpatialCrossMapLRN", VolumetricSoftMax = "SpatialSoftMax" }

local function library(name)
  local found = {}
  local function constructor(kind) return function(...) return new_module(name, kind, ...) end end
  for _, kind in ipairs(KNOWN) do found[kind] = constructor(kind) end
  for old, kind in pairs(RENAMED) do found[old] = constructor(kind) end
  return found
end

local nn = library("nn")
local cudnn, inn = library("cudnn"), library("inn")
local nothing = function() end
cudnn.convert = function(network) return network end
cudnn.version = 5000
nn.DataParallelTable = function(...) return new_module("nn", "Sequential") end

local function storage(...)
  local given = select("#", ...) == 1 and type((...)) == "table" and (...) or { ... }
  local found = {}
  for place, each in ipairs(given) do found[place] = each end
  found.size = nil
  local methods = { size = function(self, axis) return axis and self[axis] or #self end }
  function methods.apply(self, change)
    for place = 1, #self do self[place] = change(self[place]) or self[place] end
    return self
  end
  return setmetatable(found, { __index = methods })
end
local torch = {
  manualSeed = nothing, setdefaulttensortype = nothing, setnumthreads = nothing, seed = nothing,
  getdefaulttensortype = function() return "torch.FloatTensor" end,
  type = function(value) return is_module(value) and value.package .. "." .. value.kind or type(value) end,
  typename = function(value) return is_module(value) and value.package .. "." .. value.kind or nil end,
  isTensor = function(value) return type(value) == "table" and getmetatable(value) == tensor_meta end,
  eq = function(value, other)
    if type(value) ~= "table" or getmetatable(value) ~= tensor_meta then fail("torch.eq compares a tensor with a number") end
    return value:eq(other)
  end,
  load = function() fail("the file calls torch.load: give the weights of the network beside it instead") end,
  save = function() fail("torch.save writes a file, which a network file does not do") end,
}
for _, name in ipairs({ "Tensor", "FloatTensor", "DoubleTensor", "LongTensor", "IntTensor", "LongStorage", "IntStorage" }) do torch[name] = storage end

local function copy_of(given, left_out)
  local found = {}
  for key, value in pairs(given) do found[key] = value end
  for _, name in ipairs(left_out or {}) do found[name] = nil end
  return found
end

local loaded = {
  torch = torch, nn = nn, cunn = nn, cudnn = cudnn, inn = inn, nngraph = nn, dpnn = nn,
  cutorch = { setDevice = nothing, getDeviceCount = function() return 0 end, manualSeed = nothing, manualSeedAll = nothing },
  optim = {}, image = {}, xlua = {}, sys = {}, paths = {},
}
local environment = {
  assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs, pcall = pcall, select = select, tonumber = tonumber,
  tostring = tostring, type = type, unpack = unpack, xpcall = xpcall, rawget = rawget, rawset = rawset, rawequal = rawequal,
  setmetatable = setmetatable, print = nothing, math = copy_of(math), string = copy_of(string, { "dump" }), table = copy_of(table),
  torch = torch, nn = nn, logmessage = { display = nothing },
  require = function(name)
    local found = loaded[name]
    if not found then error("require '" .. tostring(name) .. "' is not known to an import", 2) end
    return found
  end,
}
loaded.paths.dofile = function() fail("the file reads another file: put the text of that file into this one") end
environment.paths = loaded.paths
environment._G = environment
for _, name in ipairs({ "cudnn", "inn", "cutorch", "optim" }) do environment[name] = loaded[name] end
getmetatable("").__metatable = false

---- JSON

local parts, size = {}, 0
local function put(text)
  size = size + #text
  if size > 16 * 1024 * 1024 then error({ told = true, text = "the network is too large", line = 0 }, 0) end
  parts[#parts + 1] = text
end
local function quoted(text)
  return '"' .. gsub(text, '[%c"\\\127-\255]', function(c) return format("\\u%04x", byte(c)) end) .. '"'
end
local write
local function write_list(list, depth)
  put("[")
  for place, each in ipairs(list) do
    if place > 1 then put(",") end
    write(each, depth)
  end
  put("]")
end
local function write_fields(fields, depth)
  put("{")
  local first = true
  for name, value in next, fields do
    if value ~= nil then
      put((first and "" or ",") .. quoted(name) .. ":")
      write(value, depth)
      first = false
    end
  end
  put("}")
end
local function plain_ops(value)
  local found = {}
  for place, op in ipairs(rawget(value, "ops")) do
    local list = { op[1] }
    for each = 2, #op do list[each] = op[each] end
    list[#list + 1] = op.line
    found[place] = { list = list }
  end
  return { list = found }
end
local function write_module(module, depth)
  local args = {}
  for place = 1, module.count do
    local value = module.args[place]
    args[place] = value == nil and { null = true } or value
  end
  local fields = {
    id = module.id, shares = module.shares, package = module.package, kind = module.kind, line = module.line,
    args = { list = args }, modules = { list = module.modules }, calls = { fields = module.calls },
    frozen = rawget(module, "accGradParameters") ~= nil or nil, has_bias = module.bias ~= nil,
    weight = module.weight and plain_ops(module.weight), bias = module.bias and plain_ops(module.bias),
  }
  if module.kind == "gModule" then
    fields.args = { list = {} }
    local numbers, nodes = {}, {}
    local function number_node(node, deep)
      if deep > 2000 then fail("a graph of nodes is too deep", module.line) end
      if not is_node(node) then fail("nn.gModule takes tables of nodes", module.line) end
      if numbers[node] then
        if numbers[node] == 0 then fail("a graph of nodes has a loop", module.line) end
        return numbers[node]
      end
      numbers[node] = 0
      local inputs = {}
      for place, each in ipairs(node.inputs) do inputs[place] = number_node(each, deep + 1) end
      nodes[#nodes + 1] = { fields = { module = node.module, part = node.part, inputs = { list = inputs }, line = node.line } }
      numbers[node] = #nodes
      return #nodes
    end
    local ends = {}
    for side = 1, 2 do
      local list = {}
      if type(module.args[side]) ~= "table" then fail("nn.gModule takes tables of nodes", module.line) end
      for place, node in ipairs(module.args[side]) do list[place] = number_node(node, 0) end
      ends[side] = { list = list }
    end
    fields.inputs, fields.outputs, fields.nodes = ends[1], ends[2], { list = nodes }
  end
  write_fields(fields, depth)
end
function write(value, depth)
  depth = depth or 0
  if depth > DEEPEST * 4 then error({ told = true, text = "modules are nested too deeply", line = 0 }, 0) end
  local kind = type(value)
  if kind == "number" then
    put(value ~= value and '"nan"' or (value == 1 / 0 or value == -1 / 0) and '"inf"' or format("%.17g", value))
  elseif kind == "string" then
    put(quoted(#value > 500 and "" or value))
  elseif kind == "boolean" then
    put(tostring(value))
  elseif is_module(value) then
    write_module(value, depth + 1)
  elseif kind == "table" then
    if rawget(value, "null") then put("null")
    elseif rawget(value, "list") then write_list(rawget(value, "list"), depth + 1)
    elseif rawget(value, "fields") then write_fields(rawget(value, "fields"), depth + 1)
    else
      local plain = {}
      for place = 1, 1000 do
        local each = rawget(value, place)
        if each == nil then break end
        plain[place] = each
      end
      write_list(plain, depth + 1)
    end
  else
    put('"' .. kind .. '"')
  end
end

---- the run

local function run()
  local chunk, problem = loadstring(source, "=" .. CHUNK)
  if not chunk then error(problem, 0) end
  setfenv(chunk, environment)
  local known = {}
  for name in pairs(environment) do known[name] = true end
  local found = chunk()
  if found == nil then
    local names = {}
    for name, value in pairs(environment) do
      if not known[name] and type(name) == "string" and match(name, "^[%a_][%w_]*$") and (is_module(value) or type(value) == "function") then
        names[#names + 1] = name
      end
    end
    sort(names)
    if names[1] then
      local call = is_module(environment[names[1]]) and names[1] or names[1] .. "(...)"
      local listed = concat(names, "`, `", 1, min(#names, 5))
      fail("the file returns nothing, and it defines `" .. listed .. "`: return the network in its last line, such as `return " .. call .. "`", 0)
    end
    fail("the file returns nothing, and not a network or function(params)", 0)
  end
  local is_function = type(found) == "function"
  if is_function then
    local given = { ngpus = 0, nclasses = parameters.nclasses }
    if parameters.shape then given.inputShape = storage(parameters.shape) end
    found = found(given)
  end
  local options = {}
  if is_module(found) then
    options.model = found
  elseif type(found) == "table" then
    options = found
  else
    fail("the file returns a network, or function(params) that returns a table with `model`, and not a " .. type(found), 0)
  end
  local model = options.model or options.network
  if not is_module(model) then fail("the returned table has no network as `model`", 0) end
  local before = {}
  for place, each in ipairs(model:listModules()) do before[place] = { list = { each.id, each.kind } } end
  local hooked = false
  if runs_hook and type(options.fineTuneHook) == "function" then
    model = options.fineTuneHook(model)
    if not is_module(model) then fail("fineTuneHook returns no network", 0) end
    hooked = true
  end
  local hook
  if type(options.labelHook) == "function" then
    local input, label = tensor({ label = "input" }), tensor({ label = "label" })
    local answer = options.labelHook(input, label)
    if type(answer) ~= "table" or getmetatable(answer) ~= tensor_meta then fail("labelHook returns neither its input nor its labels", 0) end
    hook = { fields = { of = rawget(answer, "label"), ops = plain_ops(answer) } }
  end
  local number = function(name) return type(options[name]) == "number" and options[name] or nil end
  write({ fields = {
    model = model, loss = is_module(options.loss) and options.loss or nil, is_function = is_function, croplen = number("croplen"),
    trainBatchSize = number("trainBatchSize"), validationBatchSize = number("validationBatchSize"),
    disableAutoDataParallelism = options.disableAutoDataParallelism and true or nil, hooked = hooked,
    has_hook = type(options.fineTuneHook) == "function", labelHook = hook, before = { list = before },
  } })
  return concat(parts)
end

local ok, answer = xpcall(run, function(problem)
  if type(problem) == "table" and type(rawget(problem, "text")) == "string" then
    local line = rawget(problem, "line")
    return { rawget(problem, "text"), type(line) == "number" and line >= 0 and line < 1e9 and floor(line) or 0 }
  end
  if type(problem) ~= "string" then return { "the file raises an error without a text", 0 } end
  local own = match(problem, "^%[string .-%]:%d+: (.*)$") -- a mistake that these lines met: it is the file's
  return { own or problem, own and line_of_file() or 0 }
end)
if ok then return answer end
local text = type(answer) == "table" and tostring(answer[1]) or tostring(answer)
return "!" .. format("%d", type(answer) == "table" and answer[2] or 0) .. "!" .. text
