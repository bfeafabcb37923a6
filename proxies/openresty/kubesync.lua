-- Balances requests over the nodes of a kubesync upstream, without reloads. For OpenResty, and nginx with its Lua module.
--
-- Reads the file that `kubesync render json --watch` keeps (docs/proxies.md). Each worker looks once a second whether the file was
-- replaced. If it cannot be read, or is no such file, the worker keeps the nodes that it has and says so once in the error log.
--
--     init_worker_by_lua_block { require("kubesync").start("/run/kubesync/upstreams.json") }
--     upstream kubesync { server 192.0.2.1:9 down; balancer_by_lua_block { require("kubesync").balance("prod/shop/web/80/TCP") } }

local balancer = require "ngx.balancer"
local cjson = require "cjson.safe"
local ffi = require "ffi"

local _M = { version = 1 }

-- The layout is the same on every architecture (statx(2)). mtime alone could miss a file that was replaced twice in one tick.
ffi.cdef [[
    typedef struct { int64_t seconds; uint32_t nanoseconds; int32_t reserved; } kubesync_time;
    typedef struct {
        uint32_t mask, blksize; uint64_t attributes; uint32_t nlink, uid, gid; uint16_t mode, spare0;
        uint64_t ino, size, blocks, attributes_mask;
        kubesync_time atime, btime, ctime, mtime;
        uint64_t spare[18];
    } kubesync_statx;
    int statx(int dirfd, const char *path, int flags, unsigned mask, kubesync_statx *found);
]]
-- nginx answers 502 where a balancer says that no server is live; with any other code it answers 500.
local NGX_BUSY = -3
local AT_FDCWD, STATX_BASIC_STATS = -100, 0x7ff
local found = ffi.new("kubesync_statx")
local has_statx = pcall(function() return ffi.C.statx end)

local path, last_signature, last_problem
local upstreams = {} -- key to { tiers = { { nodes, equal, sums } }, count, version }
local failed_until = {} -- "ip:port" to the time when it is tried again
local fail_seconds, more_tries = 5, 3

local function signature()
    if not has_statx then
        return nil -- an old C library: the file is read each time
    end
    if ffi.C.statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, found) ~= 0 then
        return "missing"
    end
    return string.format("%s %s %s %s", tostring(found.ino), tostring(found.size), tostring(found.mtime.seconds),
        tostring(found.mtime.nanoseconds))
end

local function problem(text)
    if text ~= last_problem then
        ngx.log(ngx.ERR, "kubesync: ", path, ": ", text, "; the last nodes stay")
    end
    last_problem = text
end

local function is_whole(number, least, most)
    return type(number) == "number" and number >= least and number <= most and number % 1 == 0
end

-- A tier: its nodes, and sums of weights for those that differ.
local function add(tiers, node)
    local at = node.tier + 1
    local tier = tiers[at]
    if not tier then
        tier = { nodes = {}, sums = {}, total = 0, equal = true, cursor = math.random(0, 1000000) }
        tiers[at] = tier
    end
    tier.equal = tier.equal and (#tier.nodes == 0 or tier.nodes[1].weight == node.weight)
    tier.total = tier.total + node.weight
    tier.nodes[#tier.nodes + 1] = node
    tier.sums[#tier.nodes] = tier.total
end

local function parsed(upstream)
    local tiers, count = {}, 0
    if type(upstream) ~= "table" or type(upstream.nodes) ~= "table" then
        return nil
    end
    for _, node in ipairs(upstream.nodes) do
        if type(node) ~= "table" or type(node.ip) ~= "string" or not is_whole(node.port, 1, 65535) then
            return nil
        end
        if node.draining ~= true then
            if not is_whole(node.tier, 0, 9) or not is_whole(node.weight, 1, 100000) then
                return nil
            end
            local host = node.ip:find(":", 1, true) and "[" .. node.ip .. "]" or node.ip
            add(tiers, { host = host, port = node.port, id = host .. ":" .. node.port, tier = node.tier, weight = node.weight })
            count = count + 1
        end
    end
    return { tiers = tiers, count = count, version = upstream.version }
end

local function without_path(why)
    return (tostring(why):gsub("^.*: ", ""))
end

-- The text of the file; nil if it cannot be read now.
local function contents()
    local opened, why = io.open(path, "rb")
    if not opened then
        return problem(without_path(why))
    end
    local text
    text, why = opened:read("*a")
    opened:close()
    if not text then
        return problem(without_path(why))
    end
    return text
end

local function take(text)
    local document = cjson.decode(text)
    if type(document) ~= "table" or document.v ~= 1 or type(document.upstreams) ~= "table" then
        return problem("is not what `kubesync render json` writes")
    end
    local made = {}
    for key, upstream in pairs(document.upstreams) do
        made[key] = parsed(upstream)
        if not made[key] then
            return problem("has an upstream that is not valid: " .. tostring(key))
        end
    end
    upstreams, last_problem = made, nil
end

local function check(premature)
    if premature then
        return
    end
    local now = signature()
    if now == nil or now ~= last_signature then
        -- A file that could not be read is tried again although it was not replaced: its rights may have changed.
        local text = contents()
        last_signature = text and now
        if text then
            take(text)
        end
    end
    local time = ngx.now()
    for id, at in pairs(failed_until) do
        if at <= time then
            failed_until[id] = nil
        end
    end
end

-- Read the file now and then once a second. Call it in init_worker_by_lua.
--   options.interval_seconds   default 1
--   options.fail_seconds       a node whose connection failed is avoided for so long; default 5
--   options.more_tries         other nodes that are tried for one request; default 3
function _M.start(file, options)
    options = options or {}
    path = file
    fail_seconds, more_tries = options.fail_seconds or fail_seconds, options.more_tries or more_tries
    math.randomseed(ngx.worker.pid() + math.floor(ngx.now() * 1000) % 100000000)
    check(false)
    assert(ngx.timer.every(options.interval_seconds or 1, check))
end

local function usable(node, tried, time)
    return not tried[node.id] and (failed_until[node.id] or 0) <= time
end

-- Round robin if all weights are equal, else random by weight. Whoever is not usable gives its turn to the next one.
local function choose(tier, tried, time)
    local nodes, start = tier.nodes, nil
    if tier.equal then
        tier.cursor = tier.cursor + 1
        start = tier.cursor % #nodes
    else
        local at, low, high = math.random(tier.total), 1, #nodes
        while low < high do
            local middle = math.floor((low + high) / 2)
            if tier.sums[middle] < at then low = middle + 1 else high = middle end
        end
        start = low - 1
    end
    for step = 0, #nodes - 1 do
        local node = nodes[(start + step) % #nodes + 1]
        if usable(node, tried, time) then
            return node
        end
    end
end

local function any(tiers, tried, time)
    for at = 1, #tiers do
        local node = choose(tiers[at], tried, time)
        if node then
            return node
        end
    end
end

-- Choose the node for this request, or for this try of it. Call it in balancer_by_lua. Without any node the client gets status 502.
function _M.balance(key)
    local context = ngx.ctx.kubesync
    local time = ngx.now()
    if context then
        if balancer.get_last_failure() == "failed" and context.last then
            failed_until[context.last] = time + fail_seconds
        end
    else
        context = { tried = {} }
        ngx.ctx.kubesync = context
    end
    local upstream = upstreams[key]
    if not upstream or upstream.count == 0 then
        return ngx.exit(NGX_BUSY)
    end
    -- All of them failed a moment ago: a try that may fail is better than an error that is sure.
    local node = any(upstream.tiers, context.tried, time) or any(upstream.tiers, context.tried, math.huge)
    if not node then
        return ngx.exit(NGX_BUSY)
    end
    if not context.last then
        balancer.set_more_tries(math.min(more_tries, upstream.count - 1))
    end
    context.tried[node.id], context.last = true, node.id
    local ok, why = balancer.set_current_peer(node.host, node.port)
    if not ok then
        ngx.log(ngx.ERR, "kubesync: ", node.id, ": ", why)
        return ngx.exit(500)
    end
end

-- For a status page: each upstream's version and number of nodes, and what is wrong with the file (nil: nothing).
function _M.status()
    local rows = {}
    for key, upstream in pairs(upstreams) do
        rows[key] = { version = upstream.version, nodes = upstream.count }
    end
    return { upstreams = rows, problem = last_problem }
end

return _M
