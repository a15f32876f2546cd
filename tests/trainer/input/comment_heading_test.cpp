// SPDX-License-Identifier: Apache-2.0
// A comment above the data that names its columns, as numpy.savetxt() writes a heading.
#include <gmock/gmock.h>

#include "tests/trainer/input/table_fixture.hpp"

namespace gpups::trainer::comment_heading_test {
namespace {

using namespace table_test;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using CommentHeading = TableTest;

TEST_F(CommentHeading, RejectsOtherOrdersThanTheOneThatIsRead) {
  char const* const order = "names the columns in another order than they are read";
  for (char const* text : {"# item user\n242 196\n", "#item,user\n242,196\n", "% item, user\n242 196\n",
                           "# by hand\n\n##  MovieId\tuser_id\r\n\n242\t196\n"}) {
    reject(text, kLists, {order, "set data.columns to [\"2\", \"1\"], or remove '"});
  }
  reject("# rating user item\n3 196 242\n", kRatings, {order, "'rating', 'user', 'item'", "[\"2\", \"3\", \"1\"]"});
  reject("# time user item rating\n9 196 242 3\n", kRatings, {order, "[\"2\", \"3\", \"4\"]"});
  reject("# head tail relation\na\tb\tr\n", kTriples, {order, "[\"1\", \"3\", \"2\"]"});
  reject("# target source weight\na b 2\n", kEdges, {order, "[\"2\", \"1\", \"3\"]"});
  reject("# weight source target\n2 a b\n", kEdges, {order, "[\"2\", \"3\", \"1\"]"});
  reject("// item user\n242 196\n", kLists, {order, "remove '//' before the names"}, {.comment = "//"});
}

TEST_F(CommentHeading, SaysThatItContradictsTheSettings) {
  EXPECT_EQ(read("# item user\n242 196\n", kLists, {.columns = {"1", "2"}}), (Rows{{"242", "196"}}));
  EXPECT_THAT(notices_, Contains(HasSubstr("names the columns in another order than data.columns")));
  EXPECT_EQ(read("# item user\n242 196\n", kLists, {.columns = {"2", "1"}}), (Rows{{"196", "242"}}));
  EXPECT_THAT(notices_, Each(Not(HasSubstr("in another order"))));
}

TEST_F(CommentHeading, OtherCommentsSayNothing) {
  for (char const* text :
       {"# user item\n196 242\n", "# item user\n# by hand\n196 242\n", "# item user rating\n196 242\n",
        "# item of user\n196 242 7\n", "# item\n196 242\n", "# movies customers\n196 242\n", "#\n196 242\n"}) {
    (void)read(text, kLists);
    EXPECT_THAT(notices_, Each(Not(HasSubstr("in another order")))) << text;
  }
  EXPECT_EQ(read("# item user\nuser,item\n196,242\n", kLists), (Rows{{"196", "242"}}));  // below is a heading
  EXPECT_EQ(read("# source target\n1 2\n# target source\n2 1\n", kEdges), (Rows{{"1", "2"}, {"2", "1"}}));
  EXPECT_EQ(read("# source of target\n1 2 3\n", kEdges), (Rows{{"1", "2", "3"}}));
}

}  // namespace
}  // namespace gpups::trainer::comment_heading_test
