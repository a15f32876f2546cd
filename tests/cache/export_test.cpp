// SPDX-License-Identifier: Apache-2.0
// Exports: the rows that exist, in files that other programs read, with the same bytes for every number of ranks.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "cache/files/export_file.hpp"
#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::export_test {
namespace {

namespace fs = std::filesystem;

std::vector<Group> group_of(int ranks) { return ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks); }

std::string contents(fs::path const& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::map<std::string, std::string> files_in(fs::path const& folder) {
  std::map<std::string, std::string> files;
  for (auto const& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = contents(entry.path());
  }
  return files;
}

// Returns the elements after a header in NumPy's format, and checks the header exactly.
std::string elements(std::string const& file, std::string const& type, std::string const& shape) {
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  std::uint16_t length = 0;
  std::memcpy(&length, file.data() + 8, sizeof length);
  EXPECT_EQ((10 + length) % 64, 0) << "elements are aligned";
  auto text = file.substr(10, length);
  EXPECT_EQ(text.back(), '\n');
  text.resize(text.find_last_not_of(" \n") + 1);
  EXPECT_EQ(text, "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }");
  return file.substr(10 + length);
}

template <class T>
std::vector<T> numbers(std::string const& bytes) {
  EXPECT_EQ(bytes.size() % sizeof(T), 0U);
  std::vector<T> all(bytes.size() / sizeof(T));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

constexpr std::size_t kDim = 5;  // rows have padding in memory

// Adds a table with 40,000 rows that all ranks assign, a table whose only key is not admitted yet, and an empty table.
void fill(Store& store) {
  store.add_table({.name = "items/new v2", .dim = kDim});
  store.add_table({.name = "waiting", .dim = 1, .admission_count = 2});
  store.add_table({.name = "none", .dim = 2});
  auto stream = store.make_stream();
  std::vector<Key> mine;
  for (std::uint64_t k = number(store.rank()); k < 40000; k += static_cast<std::uint64_t>(store.ranks())) {
    mine.push_back(Key{k * k});
  }
  Matrix<float> values(Device::host(), mine.size(), kDim);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    for (std::size_t j = 0; j < kDim; ++j) {
      values.row(i)[j] = static_cast<float>(number(mine[i]) % 1000) + static_cast<float>(j) / 8;
    }
  }
  store.assign(stream, TableId{0}, View<Key const>(mine), values);
  std::vector<Key> const once{Key{1}};
  TableBatch const part{.table = TableId{1}, .keys = View<Key const>(once)};
  bool const first = number(store.rank()) == 0;
  if (first) {
    auto const batch = store.prepare(stream, Clock{0}, {&part, 1}, 1);
    store.wait_ready(batch);
    Matrix<float> const sources(Device::host(), 1, 1);
    memory::fill_bytes(stream, sources.view().data(), 0, sources.view().flat().bytes());
    TableGradients const gradients{.sources = sources};
    store.push(stream, batch, {&gradients, 1});
  }
  store.advance_clock();
}

void expect_rows(std::string const& keys_bytes, std::string const& values_bytes) {
  auto const keys = numbers<std::uint64_t>(keys_bytes);
  auto const values = numbers<float>(values_bytes);
  ASSERT_EQ(keys.size(), 40000U);
  ASSERT_EQ(values.size(), keys.size() * kDim);
  std::map<std::uint64_t, int> seen;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ++seen[keys[i]];
    for (std::size_t j = 0; j < kDim; ++j) {
      ASSERT_EQ(values[i * kDim + j], static_cast<float>(keys[i] % 1000) + static_cast<float>(j) / 8);
    }
  }
  EXPECT_EQ(seen.size(), 40000U);
  for (std::uint64_t k = 0; k < 40000; ++k) ASSERT_TRUE(seen.contains(k * k));
}

TEST(Export, FilesAreEqualForAnyRanks) {
  TemporaryFolder const parent;
  std::map<std::string, std::string> of_one[2];
  for (int ranks : {1, 2, 3, 4}) {
    for (auto const format : {ExportFormat::kNpy, ExportFormat::kFlat}) {
      auto const folder = parent.path() / (std::to_string(ranks) + "-" + std::to_string(static_cast<int>(format)));
      run_ranks(group_of(ranks), [&](Group group) {
        Store store(group, {});
        fill(store);
        auto const hash = store.table_hash();
        store.export_rows(folder / "", format);  // a slash at the end changes nothing
        EXPECT_EQ(store.table_hash(), hash);
        store.wait_barrier();
      });
      auto const files = files_in(folder);
      EXPECT_FALSE(fs::exists(folder.string() + ".unfinished"));
      auto& first = of_one[static_cast<int>(format)];
      if (ranks == 1) first = files;
      EXPECT_EQ(files, first) << ranks << " ranks";
    }
  }
  auto const& npy = of_one[0];
  EXPECT_EQ(npy.size(), 6U);
  expect_rows(elements(npy.at("items%2Fnew%20v2.keys.npy"), "<u8", "40000,"),
              elements(npy.at("items%2Fnew%20v2.values.npy"), "<f4", "40000, 5"));
  for (std::string const empty : {"waiting", "none"}) {
    EXPECT_EQ(elements(npy.at(empty + ".keys.npy"), "<u8", "0,"), "");
    EXPECT_EQ(elements(npy.at(empty + ".values.npy"), "<f4", empty == "none" ? "0, 2" : "0, 1"), "");
  }
  auto const& flat = of_one[1];
  EXPECT_EQ(flat.size(), 9U);
  auto const json = nlohmann::json::parse(flat.at("items%2Fnew%20v2.json"));
  EXPECT_EQ(json.at("table"), "items/new v2");
  EXPECT_EQ(json.at("byte_order"), "little");
  EXPECT_EQ(json.at("keys").at("dtype"), "uint64");
  EXPECT_EQ(json.at("keys").at("shape"), nlohmann::json::array({40000}));
  EXPECT_EQ(json.at("values").at("dtype"), "float32");
  EXPECT_EQ(json.at("values").at("shape"), nlohmann::json::array({40000, 5}));
  expect_rows(flat.at(json.at("keys").at("file")), flat.at(json.at("values").at("file")));
}

TEST(Export, TableNamesAreEscapedInFileNames) {
  EXPECT_EQ(cache::file_name_of("user_id-2"), "user_id-2");
  EXPECT_EQ(cache::file_name_of("../etc/passwd"), "%2E%2E%2Fetc%2Fpasswd");
  EXPECT_EQ(cache::file_name_of("a%2Fb"), "a%252Fb");
  EXPECT_EQ(cache::file_name_of(std::string("\0\xC3\n", 3)), "%00%C3%0A");
}

// -- errors, equal on all ranks --

template <class Spoil>
void expect_failure(fs::path const& folder, Spoil spoil, std::initializer_list<char const*> words) {
  run_ranks(Group::threads(2), [&](Group group) {
    Store store(group, {});
    fill(store);
    store.wait_barrier();
    if (number(store.rank()) == 0) spoil();
    store.wait_barrier();
    expect_error([&] { store.export_rows(folder, ExportFormat::kNpy); }, words);
    EXPECT_EQ(store.size(TableId{0}), 40000U);  // the store still works
    store.wait_barrier();
  });
}

TEST(Export, RejectsFolderWithFiles) {
  TemporaryFolder const folder;
  auto const old = folder.write("old.keys.npy", "old");
  expect_failure(folder.path(), [] {}, {"exists and is not an empty folder", "a new folder"});
  EXPECT_EQ(contents(old), "old");
  fs::remove(old);
  Store store(Group::alone(), {});
  fill(store);
  store.export_rows(folder.path(), ExportFormat::kNpy);  // an empty folder is accepted
  EXPECT_EQ(files_in(folder.path()).size(), 6U);
}

TEST(Export, RejectsFileAtPath) {
  TemporaryFolder const folder;
  expect_failure(folder.write("file", "x"), [] {}, {"exists and is not an empty folder"});
}

TEST(Export, AllRanksReportFolderThatCannotBeCreated) {
  expect_failure("/proc/nowhere/export", [] {}, {"cannot be created", "check the path"});
}

TEST(Export, ReplacesUnfinishedExport) {
  TemporaryFolder const parent;
  parent.write("out.unfinished/items%2Fnew%20v2.keys.npy", "half");
  Store store(Group::alone(), {});
  fill(store);
  store.export_rows(parent.path() / "out", ExportFormat::kNpy);
  EXPECT_EQ(files_in(parent.path() / "out").size(), 6U);
  EXPECT_FALSE(fs::exists(parent.path() / "out.unfinished"));
}

// A limit on the size of files simulates a full disk.
TEST(Export, FullDiskLeavesNoFiles) {
  TemporaryFolder const parent;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto const handler = std::signal(SIGXFSZ, SIG_IGN);
  expect_failure(parent.path() / "out",
                 [&] {
                   rlimit const little{100000, before.rlim_max};
                   ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
                 },
                 {"keys.npy' failed", "the space on the disk"});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(fs::is_empty(parent.path()));
}

TEST(Export, ReportsPartThatCannotBeWritten) {
  TemporaryFolder const folder;
  expect_error([&] { cache::PartWriter(folder.path() / "none", 0); }, {"opening", "that all ranks see it"});
  cache::create_array(folder.path() / "array", "head", 6);
  EXPECT_EQ(contents(folder.path() / "array"), std::string("head\0\0\0\0\0\0", 10));
  expect_error([&] { cache::create_array(folder.path() / "array", "", 6); }, {"creating"});
  cache::PartWriter writer(folder.path() / "array", 6);
  writer.write("xyz", 3);
  writer.finish();
  EXPECT_EQ(contents(folder.path() / "array"), std::string("head\0\0xyz\0", 10));
}

}  // namespace
}  // namespace gpups::test::export_test
